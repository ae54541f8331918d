package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/prometheus/common/version"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/api/client"
)

// mcpFlags are those of "evictrail mcp".
type mcpFlags struct {
	from      readerFlags
	log       logFlags
	publicURL string
}

func newMCP() *cobra.Command {
	var f mcpFlags
	cmd := &cobra.Command{
		Use:     "mcp",
		Short:   "Answer the questions of an assistant (Model Context Protocol)",
		GroupID: "ask",
		Args:    asUsage(cobra.NoArgs),
		Long: `Answer the questions of an assistant over standard input and output, by the Model Context Protocol (docs/mcp.md).
You do not run it yourself: you name it in the configuration of the assistant. Its tools are the commands that ask;
they have the same names, say the same words, and write nothing. They ask a running evictrail or a database, as these
commands do, and see what the token or the database role may see.

An evictrail that serves answers assistants itself, at ` + api.AssistantPath + `: who asks over HTTP needs no program.`,
		Example: `  claude mcp add evictrail -- evictrail mcp --server https://evictrail.example --server-token-file /path/to/token
  claude mcp add --transport http evictrail http://127.0.0.1:8080` + api.AssistantPath + `   # a running evictrail itself
  EVICTRAIL_SERVER=http://127.0.0.1:8080 evictrail mcp                      # what a configuration starts
  evictrail mcp --database-url "$EVICTRAIL_DATABASE_URL" --public-url https://evictrail.example`,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	f.from.addFlags(cmd)
	f.log.addFlags(cmd, "warn")
	cmd.Flags().StringVar(
		&f.publicURL,
		"public-url",
		"",
		"`URL` of evictrail's pages, as people reach them, for links in answers; by default that of --server",
	)
	return cmd
}

func (f *mcpFlags) run(cmd *cobra.Command) error {
	log, err := f.log.newLogger(cmd)
	if err != nil {
		return err
	}
	if err := checkWebAddress("public-url", f.publicURL); err != nil {
		return &usageError{err}
	}
	s, err := f.from.openSource(cmd.Context())
	if err != nil {
		return err
	}
	defer s.Close()
	a := assistant{ask: s.answer, site: f.publicURL, log: log}
	if _, remote := s.written.(*client.Client); remote && a.site == "" {
		a.site = f.from.server.URL
	}
	in, out := cmd.InOrStdin(), cmd.OutOrStdout()
	if file, is := in.(*os.File); is && term.IsTerminal(int(file.Fd())) {
		printTextf(
			cmd.ErrOrStderr(),
			"Waiting for an assistant on standard input; Ctrl-C ends it. "+
				"`evictrail help mcp` says how to configure one.\n",
		)
	}
	session, err := a.newServer().Connect(
		cmd.Context(),
		&mcp.IOTransport{Reader: io.NopCloser(in), Writer: writeNopCloser{out}},
		nil,
	)
	if err != nil {
		return err
	}
	defer context.AfterFunc(cmd.Context(), func() { _ = session.Close() })()
	return ignoreCancel(cmd.Context(), session.Wait())
}

// protocolLog logs what the SDK warns of, and not each connection.
func (a assistant) protocolLog() *slog.Logger { return slog.New(warnings{a.log.Handler()}) }

// warnings is a handler of what is at least a warning.
type warnings struct{ slog.Handler }

// Enabled implements slog.Handler.
func (w warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && w.Handler.Enabled(ctx, level)
}

// writeNopCloser is a writer that others close.
type writeNopCloser struct{ io.Writer }

// Close implements io.Closer.
func (writeNopCloser) Close() error { return nil }

// instructions say to an assistant what it can ask.
const instructions = `evictrail records why the virtual machines of KubeVirt clusters are moved, why they are
not, and why that does not stop.
Ask "top" for what is wrong now, "why" for why a VM moved, "why-not" for why it does not, "loops" for what repeats;
"search" finds names.
Times are RFC 3339 (2026-11-21T00:40:00Z), dates, or ages (90m, 7d): turn "last night" into a time yourself. All
answers are in UTC.
Answers name what they rest on and what could not be observed: pass that on. Nothing here writes: what an answer
advises is for people to do.`

// newServer returns a server with all tools.
func (a assistant) newServer() *mcp.Server {
	s := mcp.NewServer(
		&mcp.Implementation{Name: "evictrail", Title: "evictrail", Version: version.Version},
		&mcp.ServerOptions{
			Instructions: instructions,
			Logger:       a.protocolLog(),
			Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
		},
	)
	s.AddReceivingMiddleware(refuseSubscriptions)
	no := false
	for _, tool := range listTools() {
		s.AddTool(&mcp.Tool{
			Name:        tool.name,
			Description: tool.about,
			InputSchema: tool.schema,
			Annotations: &mcp.ToolAnnotations{
				ReadOnlyHint:    true,
				IdempotentHint:  true,
				DestructiveHint: &no,
				OpenWorldHint:   &no,
			},
		}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return a.callTool(ctx, tool, r.Params.Arguments), nil
		})
	}
	return s
}

// refuseSubscriptions refuses to hold a connection for what never comes: the tools do not change.
func refuseSubscriptions(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
		if method == "subscriptions/listen" {
			return nil, &jsonrpc.Error{
				Code:    jsonrpc.CodeMethodNotFound,
				Message: "there is nothing to listen to: the tools do not change",
			}
		}
		return next(ctx, method, r)
	}
}

// serveAssistants answers assistants over HTTP. There are no sessions: any replica can answer any request.
func serveAssistants(log *slog.Logger) api.Assistant {
	return func(reader api.Reader, site string) http.Handler {
		ask := func(ctx context.Context, answer func(context.Context, api.Reader) error) error {
			return answer(ctx, reader)
		}
		a := assistant{ask: ask, site: site, log: log}
		server := a.newServer()
		return mcp.NewStreamableHTTPHandler(
			func(*http.Request) *mcp.Server { return server },
			&mcp.StreamableHTTPOptions{
				Stateless: true, JSONResponse: true, Logger: a.protocolLog(), PropagateRequestCancellation: true,
				DisableLocalhostProtection: true, // api.Server refuses other hosts, where only this machine may ask
			},
		)
	}
}

// callTool answers a call. What cannot be answered is for the assistant to read, too.
func (a assistant) callTool(ctx context.Context, tool assistantTool, arguments []byte) (result *mcp.CallToolResult) {
	defer func() {
		if cause := recover(); cause != nil { // else it would end the process: it is in no goroutine of net/http
			a.log.Error("tool failed", "tool", tool.name, "err", fmt.Sprint(cause))
			result = newErrorResult(errors.New("evictrail failed to answer that: its log says more"))
		}
	}()
	var answer toolAnswer
	err := a.ask(ctx, func(ctx context.Context, r api.Reader) (err error) {
		var missing []string
		if c, remote := r.(*client.Client); remote {
			r = c.Noting(func(text string) { missing = append(missing, text) })
		}
		a.reader = r
		answer, err = tool.answer(ctx, a, arguments)
		answer.addMissing(missing)
		return err
	})
	if err != nil {
		return newErrorResult(err)
	}
	return answer.newResult(a.site)
}

func newErrorResult(err error) *mcp.CallToolResult {
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: err.Error()}}}
}
