package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/evictrail/evictrail/collector"
)

// observerWebhook is how `evictrail generate manifests observer` names the webhook.
const observerWebhook = "eviction-observer.evictrail.io"

// checkObserver checks that the cluster sends evictions to the observer, where we take them, and that one answers there.
func (d *doctor) checkObserver(ctx context.Context) {
	const subject = "eviction observer"
	f := &d.f.intake.observer
	if !f.on {
		return
	}
	if d.probe != nil {
		d.checkWebhooks(ctx, subject)
	}
	switch answered, err := d.sendEmptyReview(ctx); {
	case err != nil:
		d.addCheck(healthWarn, subject, fmt.Sprintf("nobody answers reviews at %s: %v", f.at.listen, err), "start `evictrail run`; evictions are not held up during that time")
	case answered:
		d.addOKf(subject, "reviews are answered at %s", f.at.listen)
	default:
		d.addOKf(subject, "somebody listens at %s, and wants a client certificate: not tried further", f.at.listen)
	}
}

// checkWebhooks checks that the observer's webhook is installed and calls a path that is ours.
func (d *doctor) checkWebhooks(ctx context.Context, subject string) {
	found, err := askWithTimeout(ctx, func(ctx context.Context) ([]collector.Webhook, error) { return d.probe.Webhooks(ctx, observerWebhook) })
	switch {
	case apierrors.IsForbidden(err):
		d.addCheck(healthWarn, subject, "whether its webhook is installed cannot be seen: no right to list validatingwebhookconfigurations, which `run` does not need", "run `evictrail doctor` as somebody who has it")
		return
	case err != nil:
		d.addCheck(healthWarn, subject, "whether its webhook is installed cannot be seen: "+err.Error(), "")
		return
	case len(found) == 0:
		d.addCheck(healthFail, subject, "its webhook is not installed", "apply what `evictrail generate manifests observer` prints, or the chart with the observer on")
		return
	}
	var names []string
	for _, w := range found {
		names = append(names, w.Configuration)
		if !d.f.intake.observer.matchesPath(w.Path) {
			d.addCheck(healthFail, subject, fmt.Sprintf("its webhook in %s calls a path that evictrail does not serve", w.Configuration),
				"apply `evictrail generate manifests observer` with the same --admission-secret-file, or upgrade the chart's release")
		}
	}
	d.addOKf(subject, "its webhook is installed: %s", strings.Join(names, ", "))
}

// matchesPath reports whether reviews are taken at a path of a webhook. What stands before /admission is a proxy's.
func (f *observerFlags) matchesPath(path string) bool {
	_, after, found := strings.Cut(path, "/admission")
	if !found || f.secretFile == "" {
		return found
	}
	secrets, err := f.readSecretFile()
	if err != nil || after == "" && f.clientCAFile != "" {
		return err == nil
	}
	return slices.Contains(secrets, strings.TrimPrefix(after, "/"))
}

// emptyReview is a review that is answered and then forgotten: it is about nothing that is observed.
const emptyReview = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"doctor","resource":{"resource":"none"},"operation":"CONNECT"}}`

// sendEmptyReview asks the evictrail that listens where we would, if one does. It is not answered where only a client certificate lets one in.
func (d *doctor) sendEmptyReview(ctx context.Context) (answered bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	f := &d.f.intake.observer
	url, client, err := f.newSelfClient(&d.f.intake.tls)
	if err != nil {
		return false, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(emptyReview))
	if err != nil {
		return false, errors.New("the address cannot be called")
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(request)
	if err != nil {
		return false, errors.Unwrap(err) // without the URL, which has the secret
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode == http.StatusNotFound && f.secretFile == "" && f.clientCAFile != "" {
		return false, nil
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, 64<<10))
	if err == nil && (answer.StatusCode != http.StatusOK || !bytes.Contains(text, []byte(`"allowed":true`))) {
		err = fmt.Errorf("%s: %s", answer.Status, bytes.TrimSpace(text))
	}
	return err == nil, err
}

// newSelfClient returns the URL of our own listener, as this machine calls it, and a client that sends the secret to nobody but the holder of our
// certificate, whose name is not that of this address.
func (f *observerFlags) newSelfClient(server *tlsFlags) (url string, client *http.Client, err error) {
	host := f.at.listen
	if strings.HasPrefix(host, ":") {
		host = "127.0.0.1" + host
	}
	url, client = "http://"+host+"/admission", &http.Client{}
	if f.secretFile != "" {
		secrets, err := f.readSecretFile()
		if err != nil {
			return "", nil, err
		}
		url += "/" + secrets[0]
	}
	if !server.isEnabled() {
		return url, client, nil
	}
	ours, err := f.newTLSFlags(server).readFiles()
	if err != nil {
		return "", nil, err
	}
	client.Transport = &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
		MinVersion: tls.VersionTLS13, InsecureSkipVerify: true, //nolint:gosec // it must be our own, which is checked below
		VerifyConnection: func(s tls.ConnectionState) error {
			if !bytes.Equal(s.PeerCertificates[0].Raw, ours.Certificates[0].Certificate[0]) {
				return errors.New("another certificate is shown there than that of --tls-cert-file")
			}
			return nil
		},
	}}
	return "https" + strings.TrimPrefix(url, "http"), client, nil
}
