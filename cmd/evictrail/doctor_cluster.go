package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/evictrail/evictrail/collector"
	"github.com/evictrail/evictrail/trail"
)

// checkAPIServer checks the API server: whether it answers, its clock, what of KubeVirt is there, and our rights.
func (d *doctor) checkAPIServer(ctx context.Context) {
	config, err := d.f.kube.restConfig()
	if err != nil {
		d.addCheck(healthFail, "cluster", err.Error(), "name a kubeconfig that works")
		return
	}
	probe, err := collector.NewProbe(config)
	if err != nil {
		d.addCheck(healthFail, "cluster", err.Error(), "correct the kubeconfig")
		return
	}
	asked := time.Now()
	version, err := askWithTimeout(ctx, probe.Version)
	if err != nil {
		d.addCheck(healthFail, "cluster", fmt.Sprintf("%s does not answer: %v", config.Host, err), "check the address, the certificate and the network from here; what needs the cluster is not checked")
		d.name = d.f.cluster
		return
	}
	d.probe = probe
	d.addOKf("cluster", "%s answers: Kubernetes %s, in %s", config.Host, version, time.Since(asked).Round(time.Millisecond))
	d.findClusterName(ctx, config)
	d.checkClock("clock of the cluster", probe.Skew)
	d.kubeVirt(ctx)
	d.checkRights(ctx)
}

// mostSkew is as in the alert EvictrailClockSkew.
const mostSkew = 2 * time.Second

// checkClock judges how far another clock is from ours.
func (d *doctor) checkClock(subject string, ahead func() (time.Duration, bool)) {
	skew, known := ahead()
	text := fmt.Sprintf("%s ahead of ours", skew.Round(100*time.Millisecond))
	if skew < 0 {
		text = fmt.Sprintf("%s behind ours", (-skew).Round(100*time.Millisecond))
	}
	switch {
	case !known:
		d.addCheck(healthWarn, subject, "not known: its answers have no date", "")
	case skew.Abs() > mostSkew:
		d.addCheck(healthWarn, subject, text, "have all clocks set by NTP: what has times of different clocks stands in the wrong order otherwise")
	default:
		d.addOKf(subject, "within %s of ours", mostSkew)
	}
}

// kubeVirt reports which versions of KubeVirt there are and what they do not show.
func (d *doctor) kubeVirt(ctx context.Context) {
	found, err := askWithTimeout(ctx, d.probe.KubeVirts)
	switch {
	case err != nil:
		d.addCheck(healthFail, "kubevirt", err.Error(), "without it nothing can be recorded")
		return
	case len(found) == 0:
		d.addCheck(healthFail, "kubevirt", "no KubeVirt CR", "install KubeVirt, or wait until its operator has made one")
	}
	for _, k := range found {
		missing, known := k.Missing()
		if !known {
			d.addCheck(healthWarn, "kubevirt", fmt.Sprintf("version %q is of no known form", k.Version), "what it says and does not say is found out by what is seen")
			continue
		}
		d.addOKf("kubevirt", "%s", k.Version)
		for _, m := range missing {
			status := healthWarn
			if m.Advice == "" {
				status = healthOK
			}
			d.addCheck(status, "kubevirt "+k.Version, fmt.Sprintf("without %s, which is of %s: %s", m.Name, m.Since, m.Without), m.Advice)
		}
		if k.MergesAborts() {
			d.addOKf("kubevirt "+k.Version, "says the same of migrations that were stuck, too slow or aborted: their cause is an estimate")
		}
	}
}

// listNeededRights lists the rights that "run" needs with these flags.
func (f *runFlags) listNeededRights() []collector.Right {
	var rights []collector.Right
	for _, r := range collector.Rights(f.descheduler.policyMap()) {
		if r.Resource != "namespaces" || f.cluster == "" {
			rights = append(rights, r)
		}
	}
	if namespace, name, ok := cutName(f.leader.lease); ok {
		lease := collector.Right{Group: "coordination.k8s.io", Resource: "leases", Namespace: namespace}
		lease.Verb = "create" // of which no name is known yet
		rights = append(rights, lease)
		for _, lease.Verb = range []string{"get", "update"} {
			lease.Name = name
			rights = append(rights, lease)
		}
	}
	if f.listen.auth == authKubernetes {
		rights = append(rights,
			collector.Right{Verb: "create", Group: "authentication.k8s.io", Resource: "tokenreviews"},
			collector.Right{Verb: "create", Group: "authorization.k8s.io", Resource: "subjectaccessreviews"})
	}
	return rights
}

// checkRights checks each right that is needed: a line for all that are there, and one for each that is not.
func (d *doctor) checkRights(ctx context.Context) {
	n := 0
	granted := map[string][]string{} // verbs by what they are for
	var order []string
	for _, r := range d.f.listNeededRights() {
		can, err := askWithTimeout(ctx, func(ctx context.Context) (bool, error) { return d.probe.Can(ctx, r) })
		switch what := r.On(); {
		case err != nil:
			d.addCheck(healthWarn, "rights", fmt.Sprintf("%s %s: cannot be asked for: %v", r.Verb, what, err), "every authenticated user may make SelfSubjectAccessReviews: was that right taken away?")
			return
		case !can:
			d.addCheck(healthFail, "rights", "lacking: "+r.Verb+" "+what, "grant it: the ClusterRole of the chart has all that are needed")
		default:
			if granted[what] == nil {
				order = append(order, what)
			}
			granted[what] = append(granted[what], r.Verb)
			n++
		}
	}
	if n == 0 {
		return
	}
	for i, what := range order {
		order[i] = strings.Join(granted[what], ", ") + " " + what
	}
	d.addOKf("rights", "%d granted: %s", n, strings.Join(order, "; "))
}

// checkSources checks the other sources: the descheduler, audit events, the observer of evictions.
func (d *doctor) checkSources(ctx context.Context) {
	d.checkPolicy(ctx)
	d.deschedulerMetrics(ctx)
	d.nodeLoad(ctx)
	d.auditFile()
	d.checkObserver(ctx)
}

// checkPolicy checks that the descheduler's policy is known and can be read.
func (d *doctor) checkPolicy(ctx context.Context) {
	const subject = "descheduler policy"
	f := &d.f.descheduler
	var text []byte
	var err error
	switch {
	case f.stated:
		d.addOKf(subject, "stated by flags")
		return
	case f.policy != "":
		text, err = os.ReadFile(f.policy)
	case f.configMap == "":
		d.addCheck(healthWarn, subject, "not known", "if there is a descheduler, name its policy with --descheduler-configmap or --descheduler-policy: its cooldowns are not known without")
		return
	case d.probe == nil:
		d.addCheck(healthWarn, subject, "not checked: the cluster is away", "")
		return
	default:
		text, err = askWithTimeout(ctx, func(ctx context.Context) ([]byte, error) { return d.probe.PolicyText(ctx, f.policyMap()) })
	}
	if err != nil {
		d.addCheck(healthFail, subject, err.Error(), "name the ConfigMap or the file that the descheduler reads")
		return
	}
	settings, err := collector.ReadPolicy(text)
	switch {
	case err != nil:
		d.addCheck(healthFail, subject, "cannot be read: "+err.Error(), "the descheduler would refuse it, too: correct it")
	case settings.Cooldown == nil:
		d.addOKf(subject, "read; KubevirtMigrationAware is not enabled: no cooldowns")
	default:
		c := settings.Cooldown
		d.addOKf(subject, "read; cooldown %s, at most %s, counting migrations of %s", c.Base, c.Max, c.Window)
	}
}

// deschedulerMetrics checks that they can be read, and what the release of the descheduler does.
func (d *doctor) deschedulerMetrics(ctx context.Context) {
	const subject = "descheduler metrics"
	target := d.f.descheduler.newScrapeTarget()
	if target == nil {
		d.addCheck(healthWarn, subject, "not read", "if there is a descheduler, give --descheduler-metrics-url: what it held back, its version and its restarts are not known without")
		return
	}
	o, err := askWithTimeout(ctx, target.Metrics)
	if err != nil {
		d.addCheck(healthFail, subject, err.Error(), "check the URL, the network, and --descheduler-metrics-ca-file, -token-file or -insecure")
		return
	}
	d.addOKf(subject, "read: descheduler %s, running since %s", o.Version, o.StartedAt.Format(time.RFC3339))
	switch {
	case !o.Plugin:
		d.addOKf("descheduler "+o.Version, "has no KubevirtMigrationAware: it holds no VM back after a migration")
	case trail.Reseeds(o.Version):
		d.addCheck(healthWarn, "descheduler "+o.Version, "forgets in each cycle what it saw: cooldowns grow by the five migrations that KubeVirt keeps", "upgrade to 4.22 or newer if cooldowns are to grow further")
	default:
		d.addOKf("descheduler "+o.Version, "has KubevirtMigrationAware: it forgets what it saw when it is restarted")
	}
}

// auditFile checks that the audit log can be followed. What came of audit events is in the database.
func (d *doctor) auditFile() {
	path := d.f.intake.auditFile
	if path == "" {
		return
	}
	file, err := os.Open(path)
	if err != nil {
		d.addCheck(healthFail, "audit log", err.Error(), "name the log of the kube-apiserver on this node, and let us read it")
		return
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	switch {
	case err != nil:
		d.addCheck(healthFail, "audit log", err.Error(), "")
	case time.Since(info.ModTime()) > time.Hour:
		d.addCheck(healthWarn, "audit log", fmt.Sprintf("%s was last written %s ago", path, time.Since(info.ModTime()).Round(time.Minute)), "is it the one that the kube-apiserver writes now?")
	default:
		d.addOKf("audit log", "%s can be read", path)
	}
}
