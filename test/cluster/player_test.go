package cluster_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"

	"github.com/evictrail/evictrail/collector/recording"
)

// player writes a recording into an API server as those wrote it who made it happen: what the recorder found at first, then object
// by object in the order of resourceVersions, at the pace in which it happened, and the requests of the audit log by their users.
// It waits for nobody: anyone who watches sees it as it sees any cluster, the watches of different kinds in no order.
//
// What cannot be as recorded: UIDs and creation times are the API server's, times in objects are moved into the present by a
// clock, VirtualMachines and PodDisruptionBudgets are left out, and so are requests of the audit log that failed, other than
// evictions.
type player struct {
	t     *testing.T
	site  *site
	rec   *recording.Recording
	clock *clock
	uids  map[string]string // of the API server, by those in the recording
	known map[string]recorded
	users map[string]dynamic.Interface
	gone  map[string]bool // pods that evictions deleted: what was written to them during that time is not any longer
	// authors are the users who made, changed or deleted an object, by the number of the line that recorded it.
	authors map[int]auditUser
}

// recorded is what a line had of an object.
type recorded struct {
	UID               string
	Meta, Spec, State string // as JSON
	Deleting          bool
	Node              string // of a pod
}

type auditUser struct {
	Name   string   `json:"username"`
	Groups []string `json:"groups"`
}

// auditEvent is what is read of an audit event.
type auditEvent struct {
	Verb       string    `json:"verb"`
	URI        string    `json:"requestURI"`
	User       auditUser `json:"user"`
	Agent      string    `json:"userAgent"`
	ReceivedAt time.Time `json:"requestReceivedTimestamp"`
	Object     struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	Status struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	Body json.RawMessage `json:"requestObject"`
}

// The users who write where the audit log does not say who did: our policy logs neither.
var (
	controllerManager = auditUser{"system:kube-controller-manager", []string{"system:masters"}}
	virtController    = auditUser{"system:serviceaccount:kubevirt:kubevirt-controller", []string{"system:serviceaccounts", "system:serviceaccounts:kubevirt"}}
)

// resourceOf returns the resource that a line is of, and whether it is written.
var resourceOf = map[string]schema.GroupVersionResource{
	"pods": pods, "nodes": nodes, "kubevirts": kubevirts, "virtualmachineinstances": vmis, "virtualmachineinstancemigrations": migrations,
	"events": {Version: "v1", Resource: "events"},
}

// act is one thing to do.
type act struct {
	at time.Time // in the recording
	do func() error
}

// newPlayer prepares a site for a recording, and writes what the recorder found at first.
func newPlayer(t *testing.T, s *site, rec *recording.Recording) *player {
	t.Helper()
	p := &player{
		t: t, site: s, rec: rec, clock: newClock(rec.Start(), time.Now()), uids: map[string]string{}, known: map[string]recorded{}, gone: map[string]bool{},
		users: map[string]dynamic.Interface{}, authors: map[int]auditUser{},
	}
	for _, name := range p.listNamespaces() {
		s.Namespace(name, nil)
	}
	if len(rec.Policy) > 0 {
		p.writePolicy()
	}
	p.bindUsers()
	p.findAuthors()
	for range 2 { // some name the UIDs of others that come later
		for i, l := range rec.Lines {
			if _, written := resourceOf[l.Resource]; written && l.Kind == recording.KindSync {
				require.NoError(t, p.writeLine(i), "line %d: %s %s %s", l.Number, l.Kind, l.Resource, l.Key)
			}
		}
	}
	return p
}

func (p *player) listNamespaces() []string {
	var out []string
	for _, l := range p.rec.Lines {
		name, _, _ := strings.Cut(l.Key, "/")
		if name != "" && !slices.Contains([]string{"default", "kube-system", "kubevirt", policyNamespace}, name) && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

func (p *player) writePolicy() {
	p.t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"policy.yaml": string(p.rec.Policy)}}}
	o.SetAPIVersion("v1")
	o.SetKind("ConfigMap")
	o.SetNamespace(policyNamespace)
	o.SetName(policyName)
	require.NoError(p.t, p.site.ApplyObject(p.t.Context(), o))
}

// bindUsers lets everybody who is not an anonymous caller do everything: who may do what is not what is tested here.
func (p *player) bindUsers() {
	p.site.Apply(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: users-of-the-recording}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: Group, name: users-of-the-recording}
`)
}

// userConfig is that of a user of the recording, with the right to do everything.
func (p *player) userConfig(u auditUser) *rest.Config {
	groups := slices.DeleteFunc(slices.Clone(u.Groups), func(g string) bool { return g == "system:authenticated" }) // everybody is
	return p.site.User(u.Name, append(groups, "users-of-the-recording")...)
}

func (p *player) clientFor(u auditUser) dynamic.Interface {
	if p.users[u.Name] == nil {
		client, err := dynamic.NewForConfig(p.userConfig(u))
		require.NoError(p.t, err)
		p.users[u.Name] = client
	}
	return p.users[u.Name]
}

func (p *player) decodeAuditEvents() []auditEvent {
	p.t.Helper()
	out := make([]auditEvent, len(p.rec.Audit))
	for i, l := range p.rec.Audit {
		require.NoError(p.t, json.Unmarshal(l.Event, &out[i]))
	}
	return out
}

// findAuthors finds who made the changes that lines record. Migrations were made in the order in which the audit log has that;
// other changes are found by their object's name.
func (p *player) findAuthors() {
	p.t.Helper()
	var made []int // lines, in the order of resourceVersions
	for _, i := range p.sortChanges() {
		if l := p.rec.Lines[i]; l.Resource == migrations.Resource && l.Kind == recording.KindAdded {
			made = append(made, i)
		}
	}
	for _, e := range p.decodeAuditEvents() {
		if e.Status.Code >= http.StatusBadRequest || e.Object.Subresource != "" {
			continue
		}
		switch e.Verb + " " + e.Object.Resource {
		case "create " + migrations.Resource:
			require.NotEmpty(p.t, made, "a migration for each audit event")
			p.authors[made[0]], made = e.User, made[1:]
		case "delete " + migrations.Resource, "patch " + nodes.Resource:
			i := p.findChange(e)
			require.GreaterOrEqual(p.t, i, 0, "the line that records the %s of %s by %s", e.Verb, e.Object.Name, e.User.Name)
			p.authors[i] = e.User
		}
	}
	require.Empty(p.t, made, "an audit event for each migration")
}

// findChange finds the first line after a request in which its object is being deleted, or has another spec.
func (p *player) findChange(e auditEvent) int {
	p.t.Helper()
	before := ""
	for i, l := range p.rec.Lines {
		if l.Resource != e.Object.Resource || l.Key != e.Object.Namespace+"/"+e.Object.Name || l.Kind == recording.KindBookmark {
			continue
		}
		_, now := p.decodeObject(l.Object)
		switch {
		case l.At.Before(e.ReceivedAt):
			before = now.Spec
		case e.Verb == "delete" && (now.Deleting || l.Kind == recording.KindDeleted), e.Verb != "delete" && now.Spec != before:
			return i
		}
	}
	return -1
}

// sortChanges returns the lines that record changes by resourceVersion: the order in which they happened, whatever watch sent them
// first.
func (p *player) sortChanges() []int {
	var out []int
	for i, l := range p.rec.Lines {
		_, written := resourceOf[l.Resource]
		if written && slices.Contains([]recording.Kind{recording.KindAdded, recording.KindModified, recording.KindDeleted}, l.Kind) {
			out = append(out, i)
		}
	}
	slices.SortStableFunc(out, func(a, b int) int { return cmp.Compare(p.parseVersion(a), p.parseVersion(b)) })
	return out
}

func (p *player) parseVersion(i int) int64 {
	v, err := strconv.ParseInt(p.rec.Lines[i].ResourceVersion, 10, 64)
	require.NoError(p.t, err)
	return v
}

// play writes what happened, from now on.
func (p *player) play() {
	p.t.Helper()
	p.clock.shifts = append(p.clock.shifts, newClock(p.rec.Start(), time.Now()).shifts...)
	p.clock.shifts[0].from = time.Time{} // what was before was written with this one
	acts := p.listActs()
	if *idle > 0 {
		var happened []time.Time
		for _, a := range acts {
			happened = append(happened, a.at)
		}
		p.clock.leaveOut(append([]time.Time{p.rec.Start()}, happened...), *idle)
	}
	for _, a := range acts {
		select {
		case <-time.After(time.Until(p.clock.toPresent(a.at))):
		case <-p.t.Context().Done():
			p.t.Fatal(p.t.Context().Err())
		}
		if late := time.Since(p.clock.toPresent(a.at)); late >= time.Second {
			p.clock.delayRest(a.at, late)
		}
		require.NoError(p.t, a.do())
	}
}

// listActs are what was written and asked, in its order. A change happened at the latest when it, or one after it, was seen.
func (p *player) listActs() []act {
	p.t.Helper()
	var out []act
	order := p.sortChanges()
	latest := p.rec.End()
	for _, i := range slices.Backward(order) {
		l := p.rec.Lines[i]
		if l.At.Before(latest) {
			latest = l.At
		}
		out = append(out, act{latest, func() error {
			if err := p.writeLine(i); err != nil {
				return fmt.Errorf("line %d: %s %s %s: %w", l.Number, l.Kind, l.Resource, l.Key, err)
			}
			return nil
		}})
	}
	slices.Reverse(out)
	for _, e := range p.decodeAuditEvents() {
		if e.Object.Subresource != "" {
			out = append(out, act{e.ReceivedAt, func() error { return p.replayRequest(e) }})
		}
	}
	slices.SortStableFunc(out, func(a, b act) int { return a.at.Compare(b.at) })
	return out
}

// decodeObject reads an object as it was recorded, and what is compared of it.
func (p *player) decodeObject(raw []byte) (*unstructured.Unstructured, recorded) {
	p.t.Helper()
	o := &unstructured.Unstructured{}
	require.NoError(p.t, json.Unmarshal(raw, &o.Object))
	node, _, _ := unstructured.NestedString(o.Object, "spec", "nodeName")
	text := func(v ...any) string {
		raw, err := json.Marshal(v)
		require.NoError(p.t, err)
		return string(raw)
	}
	return o, recorded{
		UID:  string(o.GetUID()),
		Meta: text(o.GetLabels(), o.GetAnnotations(), o.GetFinalizers(), o.GetOwnerReferences()), Spec: text(o.Object["spec"]), State: text(o.Object["status"]),
		Deleting: o.GetDeletionTimestamp() != nil, Node: node,
	}
}

// presentObject returns an object as it is to be written: with the API server's UIDs and times of now.
func (p *player) presentObject(raw []byte) *unstructured.Unstructured {
	p.t.Helper()
	raw = p.clock.shiftTimes(raw)
	for theirs, ours := range p.uids {
		raw = bytes.ReplaceAll(raw, []byte(theirs), []byte(ours))
	}
	o, _ := p.decodeObject(raw)
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	return o
}

// writeLine writes what one line records.
func (p *player) writeLine(i int) error {
	l := p.rec.Lines[i]
	_, now := p.decodeObject(l.Object)
	key := l.Resource + " " + l.Key
	before, exists := p.known[key]
	ctx, cancel := context.WithTimeout(p.t.Context(), 30*time.Second)
	defer cancel()
	author, client := p.findAuthor(i)
	w := writer{ctx, client.Resource(resourceOf[l.Resource]), p.clientFor(controllerManager).Resource(resourceOf[l.Resource]), p.presentObject(l.Object), author}
	switch {
	case l.Kind == recording.KindDeleted:
		delete(p.known, key)
		return w.ensureGone(before.Deleting)
	case !exists:
		uid, err := w.create()
		p.uids[now.UID] = uid
		p.known[key] = now
		return err
	}
	p.known[key] = now
	switch {
	case now.Deleting && !before.Deleting:
		return w.delete(decodeGracePeriod(l.Object))
	case now.Node != before.Node:
		return w.bindPod(now.Node)
	}
	err := w.updateChanged(now.Meta != before.Meta || now.Spec != before.Spec, now.State != before.State, l.Kind == recording.KindSync)
	if p.gone[key] && apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (p *player) findAuthor(i int) (auditUser, dynamic.Interface) {
	author, known := p.authors[i]
	if !known {
		author = controllerManager
		if p.rec.Lines[i].Resource == migrations.Resource {
			author = virtController
		}
	}
	return author, p.clientFor(author)
}

// decodeGracePeriod reads for how long a recorded object may still take to end.
func decodeGracePeriod(raw []byte) *int64 {
	var o struct {
		Metadata struct {
			Grace *int64 `json:"deletionGracePeriodSeconds"`
		} `json:"metadata"`
	}
	if json.Unmarshal(raw, &o) != nil {
		return nil
	}
	return o.Metadata.Grace
}

// replayRequest makes a request of the audit log, as its user did. The answer is not compared here: refusals are answers as well.
func (p *player) replayRequest(e auditEvent) error {
	config := p.userConfig(e.User)
	config.UserAgent = e.Agent
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	method, body := http.MethodPost, []byte(e.Body)
	if e.Verb == "update" {
		method = http.MethodPut
	}
	if e.Object.Subresource == "evacuate" {
		vmi, err := p.site.Dynamic().Resource(vmis).Namespace(e.Object.Namespace).Get(p.t.Context(), e.Object.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		node, _, _ := unstructured.NestedString(vmi.Object, "status", "evacuationNodeName")
		body = fmt.Appendf(nil, `{"evacuationNodeName":%q}`, node)
	}
	request, err := http.NewRequestWithContext(p.t.Context(), method, config.Host+e.URI, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", e.Agent)
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	p.gone[e.Object.Resource+" "+e.Object.Namespace+"/"+e.Object.Name] = answer.StatusCode == http.StatusCreated
	text, err := io.ReadAll(answer.Body)
	if answer.StatusCode != e.Status.Code {
		err = errors.Join(err, fmt.Errorf("%s %s by %s: got %s, recorded was %d: %s", method, e.URI, e.User.Name, answer.Status, e.Status.Code, text))
	}
	return err
}

// writer writes one object.
type writer struct {
	ctx    context.Context
	all    dynamic.NamespaceableResourceInterface
	others dynamic.NamespaceableResourceInterface // where the author is not meant: what the API server or a kubelet does itself
	o      *unstructured.Unstructured
	author auditUser
}

func (w writer) inNamespace(all dynamic.NamespaceableResourceInterface) dynamic.ResourceInterface {
	if w.o.GetNamespace() == "" {
		return all
	}
	return all.Namespace(w.o.GetNamespace())
}

// create creates the object, and returns its UID. A status is written after it where the kind has it apart.
func (w writer) create() (string, error) {
	made, err := w.inNamespace(w.all).Create(w.ctx, w.o, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	if status, _, _ := unstructured.NestedMap(w.o.Object, "status"); len(status) > 0 {
		err = w.updateChanged(w.o.GetKind() == "Node", true, false) // admission taints new nodes
	}
	return string(made.GetUID()), err
}

// delete asks for the deletion, which those who hold the object may delay.
func (w writer) delete(grace *int64) error {
	err := w.inNamespace(w.all).Delete(w.ctx, w.o.GetName(), metav1.DeleteOptions{GracePeriodSeconds: grace})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// ensureGone sees that the object is gone: it is deleted unless it is already, and nobody holds it any longer.
func (w writer) ensureGone(deleting bool) error {
	if w.o.GetKind() == "Pod" {
		w.all = w.others // what a kubelet does when a pod has ended
		return w.delete(new(int64))
	}
	if !deleting {
		if err := w.delete(nil); err != nil {
			return err
		}
	}
	_, err := w.inNamespace(w.others).Patch(w.ctx, w.o.GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// bindPod puts a pod on a node, as a scheduler does.
func (w writer) bindPod(node string) error {
	_, err := w.inNamespace(w.all).Create(w.ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Binding", "metadata": map[string]any{"name": w.o.GetName(), "namespace": w.o.GetNamespace()},
		"target": map[string]any{"apiVersion": "v1", "kind": "Node", "name": node},
	}}, metav1.CreateOptions{}, "binding")
	return err
}

// hasStatusSubresource reports whether the status of a kind is written apart from the rest.
func (w writer) hasStatusSubresource() bool {
	return w.o.GetKind() != "VirtualMachineInstance" && w.o.GetKind() != "Event"
}

// updateChanged writes what changed: the object, its status, or both.
func (w writer) updateChanged(object, status, all bool) error {
	if w.o.GetKind() == "Event" || !w.hasStatusSubresource() || all {
		object = true
	}
	if object {
		if err := w.updateWithRetry(); err != nil {
			return err
		}
	}
	if w.hasStatusSubresource() && (status || all) {
		return w.updateWithRetry("status")
	}
	return nil
}

func (w writer) updateWithRetry(subresource ...string) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		got, err := w.inNamespace(w.all).Get(w.ctx, w.o.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		if len(subresource) > 0 {
			got.Object["status"] = w.o.Object["status"]
		} else {
			w.copyRecordedFields(got)
		}
		_, err = w.inNamespace(w.all).Update(w.ctx, got, metav1.UpdateOptions{}, subresource...)
		return err
	})
}

// copyRecordedFields has everything that may change be as recorded.
func (w writer) copyRecordedFields(got *unstructured.Unstructured) {
	got.SetLabels(w.o.GetLabels())
	got.SetAnnotations(w.o.GetAnnotations())
	got.SetFinalizers(w.o.GetFinalizers())
	got.SetOwnerReferences(w.o.GetOwnerReferences())
	for field, value := range w.o.Object {
		immutable := field == "apiVersion" || field == "kind" || field == "metadata" || field == "spec" && w.o.GetKind() == "Pod"
		if !immutable {
			got.Object[field] = value
		}
	}
}
