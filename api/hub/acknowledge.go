package hub

import (
	"context"
	"fmt"

	"github.com/evictrail/evictrail/api/client"
	"github.com/evictrail/evictrail/trail"
)

// Acknowledge implements api.AcknowledgementWriter: the source of the cluster, or the one that knows the VM or the node, writes it.
func (r reader) Acknowledge(ctx context.Context, ack trail.Acknowledgement) (trail.Acknowledgement, error) {
	a := askingOf(ctx)
	of, err := a.locate(ctx, ack.Cluster)
	switch {
	case err != nil:
		return ack, err
	case ack.Cluster != "" && len(of) == 0:
		return ack, fmt.Errorf("cluster %s: %w", ack.Cluster, trail.ErrNotFound)
	case ack.Cluster == "":
		if of, err = a.findSubject(ctx, of, ack.Subject()); err != nil {
			return ack, err
		}
	}
	written, err := askOne(ctx, a, of[0], func(ctx context.Context, c *client.Client, at place) (trail.Acknowledgement, error) {
		ack.Cluster = at.cluster
		return c.Acknowledge(ctx, ack)
	})
	written.Cluster = a.nameOf(of[0].source, written.Cluster)
	return written, a.renameAmbiguous(of[0].source, err)
}

// findSubject returns the one of some places that knows a VM or a node.
func (a *asking) findSubject(ctx context.Context, of []place, subject trail.Subject) ([]place, error) {
	var known []string
	var found []place
	for _, got := range askAll(ctx, a, of, func(ctx context.Context, c *client.Client, at place) (trail.Answer, error) {
		return c.Why(ctx, trail.Question{Cluster: at.cluster, Of: subject})
	}) {
		switch ambiguous, is := asAmbiguous(got.err); {
		case got.is && got.err == nil:
			known, found = append(known, a.nameOfSource(got.at.source)), append(found, got.at)
		case is:
			known = append(known, a.namesOf(got.at.source, ambiguous.Clusters)...)
		case got.err != nil && !isNotFound(got.err):
			return nil, got.err
		}
	}
	return found, a.chooseOne(subject.Name, known, trail.NewNotFoundError(subject))
}

// Withdraw implements api.AcknowledgementWriter: all sources are asked, of which one has written it.
func (r reader) Withdraw(ctx context.Context, id trail.FactID, by string) (written trail.Acknowledgement, err error) {
	a := askingOf(ctx)
	of, err := a.locate(ctx, "")
	if err != nil {
		return written, err
	}
	var known []string
	for _, got := range askAll(ctx, a, of, func(ctx context.Context, c *client.Client, _ place) (trail.Acknowledgement, error) {
		return c.Withdraw(ctx, id, by)
	}) {
		switch {
		case got.is && got.err == nil:
			written = got.value
			written.Cluster = a.nameOf(got.at.source, written.Cluster)
			known = append(known, written.Cluster)
		case got.err != nil && !isNotFound(got.err):
			return written, got.err
		}
	}
	return written, a.chooseOne("acknowledgement "+id.String(), known, fmt.Errorf("acknowledgement %s: %w", id, trail.ErrNotFound))
}
