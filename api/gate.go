package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/evictrail/evictrail/api/web"
	"github.com/evictrail/evictrail/trail"
)

// User is who a token belongs to, as the cluster says.
type User struct {
	Name   string
	UID    string
	Groups []string
	Extra  map[string][]string
}

// Reviewer asks the cluster about callers. It must be safe for concurrent use; its errors mean that there was no answer.
type Reviewer interface {
	// Authenticate returns whose token it is, where it was made for one of these audiences; for the API server itself, where there are
	// none. It reports false where it is nobody's, or was made for others.
	Authenticate(ctx context.Context, token string, audiences []string) (User, bool, error)
	// MaySeeVMs reports whether a user may get the VMs of a namespace; of all, where it is empty.
	MaySeeVMs(ctx context.Context, user User, namespace string) (bool, error)
	// MayScrape reports whether a user may get /metrics.
	MayScrape(ctx context.Context, user User) (bool, error)
	// MayAcknowledge reports whether a user may patch the VMI of a VM, or a node: who may change it may say that its problem is known.
	MayAcknowledge(ctx context.Context, user User, of trail.Subject) (bool, error)
}

// Gate lets in whom the cluster knows, and says what they may see: all of it, or the VMs of the namespaces in which the cluster lets
// them get VMs. What the cluster said holds for rightsHold at most, and for refusalHolds where it refused. Without an answer nobody is let in.
type Gate struct {
	// Reviewer asks the cluster.
	Reviewer Reviewer
	// Audiences are those of which a token must be made for one: so that anyone who reads ours can show them nowhere else. None: the API
	// server's own.
	Audiences []string
	// ServerTokens says which callers may show a token that was made for the API server itself, too. Zero: none.
	ServerTokens ServerTokens
	// Cluster names the cluster that is asked; empty while it is not known. Of others nothing is shown.
	Cluster func() string
	// Namespaces names those of which anything is recorded.
	Namespaces func(ctx context.Context, cluster string) ([]string, error)
	// Denied is called for each request that is refused, with one of the causes; may be nil.
	Denied func(cause string)
	// Failed is called with the error when the cluster, or the database, could not be asked; may be nil.
	Failed func(error)

	hold     time.Duration // for which an admission may be relied on; zero: rightsHold
	verdicts verdicts
	budgets  budgets
}

// The bounds of what callers can make us ask the cluster.
const (
	rightsHold   = time.Minute
	refusalHolds = 10 * time.Second
	failureHolds = 2 * time.Second
	askTimeout   = 10 * time.Second // of all that is asked about one caller
	askAtOnce    = 8                // namespaces of one caller
	tokenMost    = 16 << 10         // bytes of a token
)

// Why a caller is refused, beside the causes of Access.
const (
	DeniedNoToken  = "no_credentials"
	DeniedNoRight  = "no_right"
	DeniedTooOften = "too_often"
	DeniedNoAnswer = "no_answer"
)

// caller is who asks, and what they may see.
type caller struct {
	user     string
	identity User
	scope    trail.Scope
}

// ServerTokens says where tokens that were made for the API server itself are accepted.
type ServerTokens string

// The values of ServerTokens.
const (
	ServerTokensNone    ServerTokens = "none"
	ServerTokensMetrics ServerTokens = "metrics" // for /metrics: a Prometheus can hardly show others
	ServerTokensAll     ServerTokens = "all"     // everywhere: where users have no others
)

func (a ServerTokens) isAcceptedFor(needs right) bool {
	return a == ServerTokensAll || a == ServerTokensMetrics && needs == rightToScrape
}

// right is what a route needs of a caller.
type right int

// The rights that routes need. The first is that of a route that says nothing.
const (
	rightToSeeVMs right = iota // some, of the namespaces that the answer then is about
	rightToScrape              // get /metrics
)

// authorizeRequest says who sends a request, and what they may see. The error is a *Problem. Where there is no gate everybody sees everything.
func (g *Gate) authorizeRequest(r *http.Request, needs right) (caller, error) {
	if g == nil {
		return caller{scope: trail.Everything()}, nil
	}
	token := TokenOf(r)
	if token == "" {
		return caller{}, g.denyRequest(DeniedNoToken, http.StatusUnauthorized, "say who you are: send a token of the cluster as a bearer token, such as one of `"+g.CreateToken()+"`; in a browser, sign in at /signin")
	}
	if len(token) > tokenMost {
		return caller{}, g.denyRequest(DeniedCredentials, http.StatusUnauthorized, "this is no token of a cluster: it is longer than "+strconv.Itoa(tokenMost)+" bytes")
	}
	from := addressOf(r.RemoteAddr)
	v := g.verdicts.findOrAsk(keyOf(token, needs), cmp.Or(g.hold, rightsHold), func(known bool) verdict {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), askTimeout) // others may wait for the same answer
		defer cancel()
		if !g.budgets.spend(ctx, from, known) {
			return verdict{refused: DeniedTooOften}
		}
		v := g.askCluster(ctx, tokenQuestion{token, needs, known})
		if v.refused == "" {
			g.budgets.markKnownHost(from)
		}
		return v
	})
	switch v.refused {
	case "":
		nameCaller(r.Context(), v.user)
		return v.caller, nil
	case DeniedTooOften:
		p := g.denyRequest(v.refused, http.StatusTooManyRequests, "too many tokens that are not known come from "+from.String()+", or from around it: come again in a second")
		p.retry = time.Second
		return caller{}, p
	case DeniedNoAnswer:
		return caller{}, g.denyUnanswered()
	case DeniedNoRight:
		return caller{}, g.denyRequest(v.refused, http.StatusForbidden, noRight[needs](v.user))
	}
	return caller{}, g.denyRequest(v.refused, http.StatusUnauthorized, "the cluster does not know this token as one for evictrail, or not any more: send another, such as one of `"+g.CreateToken()+"`")
}

// CreateToken returns the command that makes a token which the gate accepts.
func (g *Gate) CreateToken() string {
	command := "kubectl create token SERVICEACCOUNT -n NAMESPACE"
	if len(g.Audiences) > 0 {
		command += " --audience=" + g.Audiences[0]
	}
	return command
}

// noRight says which right a user does not have.
var noRight = map[right]func(user string) string{
	rightToSeeVMs: func(user string) string {
		return user + " may get virtualmachineinstances (kubevirt.io) in no namespace of which anything is recorded: ask for that right in yours, such as by the role kubevirt.io:view"
	},
	rightToScrape: func(user string) string {
		return user + " may not get /metrics: the nonResourceURL is to be allowed by a ClusterRole"
	},
}

func (g *Gate) denyRequest(cause string, status int, detail string) *Problem {
	if g.Denied != nil {
		g.Denied(cause)
	}
	p := newProblem(status, detail)
	if status == http.StatusUnauthorized {
		p.challenge = challenge
	}
	return p
}

// denyUnanswered refuses a request about whose sender the cluster does not answer.
func (g *Gate) denyUnanswered() *Problem {
	p := g.denyRequest(DeniedNoAnswer, http.StatusServiceUnavailable, "cannot verify who you are and what you may do: the API server is unreachable; /readyz and the log of evictrail say more")
	p.retry = retryBusy
	return p
}

// verdict is what the cluster said of a token.
type verdict struct {
	caller
	refused string // why; empty where it is not
}

// refusalTTL returns how long a refusal may be relied on.
func (v verdict) refusalTTL() time.Duration {
	switch v.refused {
	case DeniedNoAnswer:
		return failureHolds
	case DeniedTooOften:
		return 0
	}
	return refusalHolds
}

// tokenQuestion is what the cluster is asked about a token.
type tokenQuestion struct {
	token string
	needs right
	known bool // the token was admitted within the last hour
}

// askCluster asks the cluster.
func (g *Gate) askCluster(ctx context.Context, q tokenQuestion) verdict {
	v, err := g.reviewToken(ctx, q)
	if err != nil {
		if g.Failed != nil {
			g.Failed(err)
		}
		return verdict{refused: DeniedNoAnswer}
	}
	return v
}

func (g *Gate) reviewToken(ctx context.Context, q tokenQuestion) (v verdict, err error) {
	user, known, err := g.authenticateToken(ctx, q)
	switch {
	case err != nil:
		return v, fmt.Errorf("ask whose token it is: %w", err)
	case !known:
		return verdict{refused: DeniedCredentials}, nil
	}
	v.user, v.identity = user.Name, user
	if q.needs == rightToScrape {
		may, err := g.Reviewer.MayScrape(ctx, user)
		if !may {
			v.refused = DeniedNoRight
		}
		return v, err
	}
	if v.scope, err = g.scopeOf(ctx, user, q.known); v.scope.Empty() {
		v.refused = DeniedNoRight
	}
	return v, err
}

// authenticateToken asks whose token it is, as one for our audiences and, where that is accepted, as one for the API server.
func (g *Gate) authenticateToken(ctx context.Context, q tokenQuestion) (User, bool, error) {
	user, known, err := g.Reviewer.Authenticate(ctx, q.token, g.Audiences)
	if known || err != nil || len(g.Audiences) == 0 || !g.ServerTokens.isAcceptedFor(q.needs) {
		return user, known, err
	}
	return g.Reviewer.Authenticate(ctx, q.token, nil)
}

var errNoCluster = errors.New("the name of the cluster is not known yet")

// scopeOf asks in which of the namespaces that are known a user may get VMs.
func (g *Gate) scopeOf(ctx context.Context, user User, known bool) (trail.Scope, error) {
	cluster := g.Cluster()
	if cluster == "" {
		return trail.Scope{}, errNoCluster
	}
	may, err := g.maySee(ctx, user, "", known)
	if err != nil {
		return trail.Scope{}, err
	}
	if may {
		return trail.Within(cluster), nil
	}
	namespaces, err := g.Namespaces(ctx, cluster)
	if err != nil {
		return trail.Scope{}, err
	}
	answers := make([]bool, len(namespaces))
	asking, ctx := errgroup.WithContext(ctx)
	asking.SetLimit(askAtOnce)
	for i, namespace := range namespaces {
		asking.Go(func() (err error) {
			answers[i], err = g.maySee(ctx, user, namespace, known)
			return err
		})
	}
	if err := asking.Wait(); err != nil {
		return trail.Scope{}, err
	}
	var seen []string
	for i, namespace := range namespaces {
		if answers[i] && namespace != "" {
			seen = append(seen, namespace)
		}
	}
	return trail.Only(cluster, seen...), nil
}

func (g *Gate) maySee(ctx context.Context, user User, namespace string, known bool) (bool, error) {
	if err := g.budgets.waitForRight(ctx, known); err != nil {
		return false, fmt.Errorf("ask what a user may see: %w", err)
	}
	may, err := g.Reviewer.MaySeeVMs(ctx, user, namespace)
	if err != nil {
		return false, fmt.Errorf("ask what a user may see: %w", err)
	}
	return may, nil
}

// TokenOf returns the token of a request: of its header or, where it only reads, of the cookie that signing in left.
func TokenOf(r *http.Request) string {
	if header := r.Header.Get("Authorization"); header != "" {
		if scheme, token, _ := strings.Cut(header, " "); strings.EqualFold(scheme, "Bearer") {
			return strings.TrimSpace(token)
		}
		return ""
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return ""
	}
	return web.SignedIn(r)
}

// requireRight lets the handler answer those who may ask, and passes it who they are.
func (g *Gate) requireRight(needs right, next func(http.ResponseWriter, *http.Request, caller)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Vary", "Authorization, Cookie")
		who, err := g.authorizeRequest(r, needs)
		if err != nil {
			var p *Problem
			errors.As(err, &p)
			p.write(w)
			return
		}
		next(w, r, who)
	})
}

// authorizeVisitor is admit for the web page. The error is a *web.Refusal.
func (g *Gate) authorizeVisitor(r *http.Request) (web.Visitor, error) {
	who, err := g.authorizeRequest(r, rightToSeeVMs)
	var p *Problem
	if errors.As(err, &p) {
		return web.Visitor{}, p.ToRefusal()
	}
	return web.Visitor{Name: who.user, Scope: who.scope}, err
}
