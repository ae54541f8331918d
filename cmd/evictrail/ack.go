package main

import (
	"cmp"
	"context"
	"os/user"
	"time"

	"github.com/spf13/cobra"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/trail"
)

// acknowledgementsList is `evictrail ack list`.
var acknowledgementsList = list{view: trail.ViewAcknowledgements, none: "No acknowledgements.",
	example: "  evictrail ack list --since 7d\n  evictrail ack list -o json | jq '.[] | select(.ended_at == null)'   # that hold now"}

func newAck() *cobra.Command {
	cmd := &cobra.Command{
		Use: "ack", Short: "Acknowledge the problem of a VM or a node, so that others on call know", GroupID: "ask",
		Long: `Say that you know the problem of a VM or a node: with a note, a ticket, and until when. Pages, the API and the views loops and evacuations show that.
Nothing else changes: evictrail goes on recording, and alerts go on. An acknowledgement ends by itself when its time is over.`,
		Example: `  evictrail ack vm shop/db-1 --note "disk array is being fixed" --ticket OPS-17 --for 8h
  evictrail ack node worker-2 --ticket https://tickets.example/OPS-18 --for 2d
  evictrail ack list
  evictrail ack withdraw 0b6b1f0e-93a1-4c8e-9a57-6f4d3f6f2a10`,
		Args: asUsage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	listing := newList(acknowledgementsList)
	listing.Use, listing.GroupID = "list", ""
	cmd.AddCommand(newAckVM(), newAckNode(), listing, newWithdraw())
	return cmd
}

// ackFlags say what is acknowledged, by whom and to whom that is said.
type ackFlags struct {
	from                                readerFlags
	cluster, author, note, ticket, hold string
}

// ackRights says who may acknowledge.
const ackRights = `

With --server it needs an evictrail that runs with --auth; with --auth=kubernetes you need the right to patch what you acknowledge, and are its author.
Without --server it is written to the database, as evictrail_writer.`

func (f *ackFlags) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.cluster, "cluster", "", "the `cluster`, where several are recorded")
	cmd.Flags().StringVar(&f.note, "note", "", "`text`: what is known of the problem")
	cmd.Flags().StringVar(&f.ticket, "ticket", "", "`ticket` or its address")
	cmd.Flags().StringVar(&f.hold, "for", "8h", "for how `long` it holds, such as 8h or 2d; 30d at most")
	f.addAuthorFlag(cmd)
	f.from.addFlags(cmd)
	completeNames(cmd, &f.from, &f.cluster)
}

func (f *ackFlags) addAuthorFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.author, "author", "", "your `name`; by default that of your account on this machine. A server that knows its callers takes theirs")
}

// nameAuthor returns who writes.
func (f *ackFlags) nameAuthor() string {
	if f.author != "" {
		return f.author
	}
	if u, err := user.Current(); err == nil {
		return cmp.Or(u.Username, u.Uid)
	}
	return ""
}

// acknowledger is where acknowledgements are written.
type acknowledger interface {
	Acknowledge(ctx context.Context, a trail.Acknowledgement) (trail.Acknowledgement, error)
	Withdraw(ctx context.Context, id trail.FactID, by string) (trail.Acknowledgement, error)
}

var _ acknowledger = api.Acknowledger(nil)

// acknowledge writes what the flags say of a VM or a node, and prints it.
func (f *ackFlags) acknowledge(cmd *cobra.Command, of trail.Subject) error {
	var holds days
	if err := holds.Set(f.hold); err != nil || holds == 0 {
		return usageErrorf("for %q: expected a time such as 8h or 2d", f.hold)
	}
	now := time.Now().UTC()
	a := trail.Acknowledge(of, time.Duration(holds), now)
	a.Cluster, a.Author, a.Note, a.Ticket = f.cluster, f.nameAuthor(), f.note, f.ticket
	a, err := a.Clean(now)
	if err != nil {
		return usageErrorf("%w", err)
	}
	return f.write(cmd, func(ctx context.Context, s *source) (trail.Acknowledgement, error) {
		a, err := s.Acknowledge(ctx, a)
		return a, inCluster(ctx, s.written, f.cluster, err)
	})
}

// write runs what writes an acknowledgement, and prints that.
func (f *ackFlags) write(cmd *cobra.Command, write func(context.Context, *source) (trail.Acknowledgement, error)) error {
	s, err := f.from.openSource(cmd.Context())
	if err != nil {
		return err
	}
	defer s.Close()
	a, err := write(cmd.Context(), s)
	if err != nil {
		return err
	}
	printTextf(cmd.OutOrStdout(), "%s\nID: %s\n", a.Sentence(), a.ID)
	return nil
}

func newAckVM() *cobra.Command {
	var f ackFlags
	cmd := &cobra.Command{
		Use: "vm NAMESPACE/VM", Short: "Acknowledge the problem of a VM", Args: asUsage(cobra.ExactArgs(1)),
		Long: `Acknowledge the problem of a VM: its open loops and evacuations show who knows it. It replaces the acknowledgement that the VM has.
Give a note, a ticket or both. Exit status 3 when the VM is not known.` + ackRights,
		Example: `  evictrail ack vm shop/db-1 --note "disk array is being fixed" --ticket OPS-17
  evictrail ack vm shop/db-1 --ticket OPS-17 --for 2d --server https://evictrail.example --server-token-file token`,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return completeOne(cmd, &f, args, trail.NameQuery{Kind: trail.NameVM, Cluster: f.cluster, Prefix: typed})
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			namespace, vm, err := parseVM(args[0])
			if err != nil {
				return err
			}
			return f.acknowledge(cmd, trail.VMISubject(namespace, vm))
		},
	}
	f.addFlags(cmd)
	return cmd
}

func newAckNode() *cobra.Command {
	var f ackFlags
	cmd := &cobra.Command{
		Use: "node NODE", Short: "Acknowledge the problem of a node", Args: asUsage(cobra.ExactArgs(1)),
		Long: `Acknowledge the problem of a node: its page, and its open loops that are about no one VM, show who knows it. It replaces the acknowledgement that the
node has. Give a note, a ticket or both. Exit status 3 when the node is not known.` + ackRights,
		Example: `  evictrail ack node worker-2 --note "memory is being replaced" --ticket OPS-18 --for 2d`,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return completeOne(cmd, &f, args, trail.NameQuery{Kind: trail.NameNode, Cluster: f.cluster, Prefix: typed})
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if !isName(args[0]) {
				return usageErrorf("%q: expected the name of a node", args[0])
			}
			return f.acknowledge(cmd, trail.Subject{Kind: trail.SubjectNode, Name: args[0]})
		},
	}
	f.addFlags(cmd)
	return cmd
}

// completeOne completes the only argument.
func completeOne(cmd *cobra.Command, f *ackFlags, args []string, q trail.NameQuery) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return findCompletions(cmd, &f.from, q, "")
}

func newWithdraw() *cobra.Command {
	var f ackFlags
	cmd := &cobra.Command{
		Use: "withdraw ID", Short: "End an acknowledgement before its time is over", Args: asUsage(cobra.ExactArgs(1)), ValidArgsFunction: cobra.NoFileCompletions,
		Long:    `End an acknowledgement before its time is over. It stays in the list. Exit status 3 when there is none with this ID, or it has ended.` + ackRights,
		Example: `  evictrail ack withdraw 0b6b1f0e-93a1-4c8e-9a57-6f4d3f6f2a10`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var id trail.FactID
			if err := id.UnmarshalText([]byte(args[0])); err != nil {
				return usageErrorf("%q: expected the ID of an acknowledgement, as `evictrail ack list` shows it", args[0])
			}
			return f.write(cmd, func(ctx context.Context, s *source) (trail.Acknowledgement, error) {
				return s.Withdraw(ctx, id, f.nameAuthor())
			})
		},
	}
	f.addAuthorFlag(cmd)
	f.from.addFlags(cmd)
	return cmd
}
