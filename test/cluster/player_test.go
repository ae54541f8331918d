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
// It waits for nobody: whoever watches sees it as it sees any cluster, the watches of different kinds in no order.
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
	gone  map[string]bool // pods that evictions deleted: what was written to them meanwhile is not any longer
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

// resourceOf gives the resource that a line is of, and whether it is written.
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
	for _, name := range p.namespaces() {
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
				require.NoError(t, p.write(i), "line %d: %s %s %s", l.Number, l.Kind, l.Resource, l.Key)
			}
		}
	}
	return p
}

func (p *player) namespaces() []string {
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

// config is that of a user of the recording, with the right to do everything.
func (p *player) config(u auditUser) *rest.Config {
	groups := slices.DeleteFunc(slices.Clone(u.Groups), func(g string) bool { return g == "system:authenticated" }) // everybody is
	return p.site.User(u.Name, append(groups, "users-of-the-recording")...)
}

func (p *player) as(u auditUser) dynamic.Interface {
	if p.users[u.Name] == nil {
		client, err := dynamic.NewForConfig(p.config(u))
		require.NoError(p.t, err)
		p.users[u.Name] = client
	}
	return p.users[u.Name]
}

func (p *player) audit() []auditEvent {
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
	for _, i := range p.order() {
		if l := p.rec.Lines[i]; l.Resource == migrations.Resource && l.Kind == recording.KindAdded {
			made = append(made, i)
		}
	}
	for _, e := range p.audit() {
		if e.Status.Code >= http.StatusBadRequest || e.Object.Subresource != "" {
			continue
		}
		switch e.Verb + " " + e.Object.Resource {
		case "create " + migrations.Resource:
			require.NotEmpty(p.t, made, "a migration for each audit event")
			p.authors[made[0]], made = e.User, made[1:]
		case "delete " + migrations.Resource, "patch " + nodes.Resource:
			i := p.changed(e)
			require.GreaterOrEqual(p.t, i, 0, "the line that records the %s of %s by %s", e.Verb, e.Object.Name, e.User.Name)
			p.authors[i] = e.User
		}
	}
	require.Empty(p.t, made, "an audit event for each migration")
}

// changed finds the first line after a request in which its object is being deleted, or has another spec.
func (p *player) changed(e auditEvent) int {
	p.t.Helper()
	before := ""
	for i, l := range p.rec.Lines {
		if l.Resource != e.Object.Resource || l.Key != e.Object.Namespace+"/"+e.Object.Name || l.Kind == recording.KindBookmark {
			continue
		}
		_, now := p.read(l.Object)
		switch {
		case l.At.Before(e.ReceivedAt):
			before = now.Spec
		case e.Verb == "delete" && (now.Deleting || l.Kind == recording.KindDeleted), e.Verb != "delete" && now.Spec != before:
			return i
		}
	}
	return -1
}

// order returns the lines that record changes by resourceVersion: the order in which they happened, whatever watch told of them
// first.
func (p *player) order() []int {
	var out []int
	for i, l := range p.rec.Lines {
		_, written := resourceOf[l.Resource]
		if written && slices.Contains([]recording.Kind{recording.KindAdded, recording.KindModified, recording.KindDeleted}, l.Kind) {
			out = append(out, i)
		}
	}
	slices.SortStableFunc(out, func(a, b int) int { return cmp.Compare(p.version(a), p.version(b)) })
	return out
}

func (p *player) version(i int) int64 {
	v, err := strconv.ParseInt(p.rec.Lines[i].ResourceVersion, 10, 64)
	require.NoError(p.t, err)
	return v
}

// play writes what happened, from now on.
func (p *player) play() {
	p.t.Helper()
	p.clock.shifts = append(p.clock.shifts, newClock(p.rec.Start(), time.Now()).shifts...)
	p.clock.shifts[0].from = time.Time{} // what was before was written with this one
	acts := p.acts()
	if *idle > 0 {
		var happened []time.Time
		for _, a := range acts {
			happened = append(happened, a.at)
		}
		p.clock.leaveOut(append([]time.Time{p.rec.Start()}, happened...), *idle)
	}
	for _, a := range acts {
		select {
		case <-time.After(time.Until(p.clock.now(a.at))):
		case <-p.t.Context().Done():
			p.t.Fatal(p.t.Context().Err())
		}
		if late := time.Since(p.clock.now(a.at)); late >= time.Second {
			p.clock.slip(a.at, late)
		}
		require.NoError(p.t, a.do())
	}
}

// acts are what was written and asked, in its order. A change happened at the latest when it, or one after it, was seen.
func (p *player) acts() []act {
	p.t.Helper()
	var out []act
	order := p.order()
	latest := p.rec.End()
	for _, i := range slices.Backward(order) {
		l := p.rec.Lines[i]
		if l.At.Before(latest) {
			latest = l.At
		}
		out = append(out, act{latest, func() error {
			if err := p.write(i); err != nil {
				return fmt.Errorf("line %d: %s %s %s: %w", l.Number, l.Kind, l.Resource, l.Key, err)
			}
			return nil
		}})
	}
	slices.Reverse(out)
	for _, e := range p.audit() {
		if e.Object.Subresource != "" {
			out = append(out, act{e.ReceivedAt, func() error { return p.ask(e) }})
		}
	}
	slices.SortStableFunc(out, func(a, b act) int { return a.at.Compare(b.at) })
	return out
}

// read reads an object as it was recorded, and what is compared of it.
func (p *player) read(raw []byte) (*unstructured.Unstructured, recorded) {
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

// present returns an object as it is to be written: with the API server's UIDs and times of now.
func (p *player) present(raw []byte) *unstructured.Unstructured {
	p.t.Helper()
	raw = p.clock.move(raw)
	for theirs, ours := range p.uids {
		raw = bytes.ReplaceAll(raw, []byte(theirs), []byte(ours))
	}
	o, _ := p.read(raw)
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	return o
}

// write writes what one line records.
func (p *player) write(i int) error {
	l := p.rec.Lines[i]
	_, now := p.read(l.Object)
	key := l.Resource + " " + l.Key
	before, exists := p.known[key]
	ctx, cancel := context.WithTimeout(p.t.Context(), 30*time.Second)
	defer cancel()
	author, client := p.author(i)
	w := writer{ctx, client.Resource(resourceOf[l.Resource]), p.as(controllerManager).Resource(resourceOf[l.Resource]), p.present(l.Object), author}
	switch {
	case l.Kind == recording.KindDeleted:
		delete(p.known, key)
		return w.remove(before.Deleting)
	case !exists:
		uid, err := w.create()
		p.uids[now.UID] = uid
		p.known[key] = now
		return err
	}
	p.known[key] = now
	switch {
	case now.Deleting && !before.Deleting:
		return w.delete(o64(l.Object))
	case now.Node != before.Node:
		return w.bind(now.Node)
	}
	err := w.update(now.Meta != before.Meta || now.Spec != before.Spec, now.State != before.State, l.Kind == recording.KindSync)
	if p.gone[key] && apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (p *player) author(i int) (auditUser, dynamic.Interface) {
	author, told := p.authors[i]
	if !told {
		author = controllerManager
		if p.rec.Lines[i].Resource == migrations.Resource {
			author = virtController
		}
	}
	return author, p.as(author)
}

// o64 reads for how long a recorded object may still take to end.
func o64(raw []byte) *int64 {
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

// ask makes a request of the audit log, as its user did. The answer is not compared here: refusals are answers as well.
func (p *player) ask(e auditEvent) error {
	config := p.config(e.User)
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

func (w writer) in(all dynamic.NamespaceableResourceInterface) dynamic.ResourceInterface {
	if w.o.GetNamespace() == "" {
		return all
	}
	return all.Namespace(w.o.GetNamespace())
}

// create creates the object, and returns its UID. A status is written after it where the kind has it apart.
func (w writer) create() (string, error) {
	made, err := w.in(w.all).Create(w.ctx, w.o, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	if status, _, _ := unstructured.NestedMap(w.o.Object, "status"); len(status) > 0 {
		err = w.update(w.o.GetKind() == "Node", true, false) // admission taints new nodes
	}
	return string(made.GetUID()), err
}

// delete asks for the deletion, which those who hold the object may delay.
func (w writer) delete(grace *int64) error {
	err := w.in(w.all).Delete(w.ctx, w.o.GetName(), metav1.DeleteOptions{GracePeriodSeconds: grace})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// remove sees that the object is gone: it is deleted unless it is already, and nobody holds it any longer.
func (w writer) remove(deleting bool) error {
	if w.o.GetKind() == "Pod" {
		w.all = w.others // what a kubelet does when a pod has ended
		return w.delete(new(int64))
	}
	if !deleting {
		if err := w.delete(nil); err != nil {
			return err
		}
	}
	_, err := w.in(w.others).Patch(w.ctx, w.o.GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// bind puts a pod on a node, as a scheduler does.
func (w writer) bind(node string) error {
	_, err := w.in(w.all).Create(w.ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Binding", "metadata": map[string]any{"name": w.o.GetName(), "namespace": w.o.GetNamespace()},
		"target": map[string]any{"apiVersion": "v1", "kind": "Node", "name": node},
	}}, metav1.CreateOptions{}, "binding")
	return err
}

// apart reports whether the status of a kind is written apart from the rest.
func (w writer) apart() bool {
	return w.o.GetKind() != "VirtualMachineInstance" && w.o.GetKind() != "Event"
}

// update writes what changed: the object, its status, or both.
func (w writer) update(object, status, all bool) error {
	if w.o.GetKind() == "Event" || !w.apart() || all {
		object = true
	}
	if object {
		if err := w.put(); err != nil {
			return err
		}
	}
	if w.apart() && (status || all) {
		return w.put("status")
	}
	return nil
}

func (w writer) put(subresource ...string) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		got, err := w.in(w.all).Get(w.ctx, w.o.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		if len(subresource) > 0 {
			got.Object["status"] = w.o.Object["status"]
		} else {
			w.fill(got)
		}
		_, err = w.in(w.all).Update(w.ctx, got, metav1.UpdateOptions{}, subresource...)
		return err
	})
}

// fill has everything that may change be as recorded.
func (w writer) fill(got *unstructured.Unstructured) {
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
