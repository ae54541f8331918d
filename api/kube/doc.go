// Package kube asks a Kubernetes API server about callers of evictrail: whose token they send (TokenReview), and what that user may
// see (SubjectAccessReview). It decides nothing and remembers nothing: api.Gate does.
//
//	reviewer, err := kube.New(config)
//	user, known, err := reviewer.Authenticate(ctx, token, []string{"evictrail"})
//	sees, err := reviewer.MaySeeVMs(ctx, user, "shop") // the VMs of namespace shop
//
// evictrail needs the right to create tokenreviews (authentication.k8s.io) and subjectaccessreviews (authorization.k8s.io).
package kube
