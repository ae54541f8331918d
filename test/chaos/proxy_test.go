package chaos_test

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

// proxy stands between evictrail and Postgres. It passes on what each says, message by message, unless its fault has it otherwise.
type proxy struct {
	config   *pgx.ConnConfig // of Postgres
	listener net.Listener
	fault    atomic.Pointer[fault]
	away     atomic.Bool // nobody is let in

	mu    sync.Mutex
	links map[*link]struct{}
}

// fault is asked about each message before it is passed on, in the order of its direction on its link; links and directions ask at once. It
// may change the message, take its time, or cut the link. It reports whether the message is passed on.
type fault func(*message) bool

// message is one message of the protocol.
//
// Source: https://www.postgresql.org/docs/current/protocol-message-formats.html.
type message struct {
	link      *link
	reply     bool   // of Postgres
	kind      byte   // of the message
	statement string // what a Bind or a Query runs, or what a CommandComplete answers; for others empty
	tag       string // of a CommandComplete, such as "INSERT 0 5"
	raw       []byte // as it is sent
}

// The kinds of messages that are looked into: of clients, then of Postgres.
const (
	kindParse = 'P'
	kindBind  = 'B'
	kindQuery = 'Q'

	kindComplete = 'C'
	kindEmpty    = 'I'
	kindError    = 'E'
)

// link is a connection to Postgres.
type link struct {
	client, server net.Conn

	mu       sync.Mutex
	prepared map[string]string // statements by their names
	running  []string          // statements that are still to be answered
}

// startProxy listens in front of a database until the test ends.
func startProxy(t *testing.T, database string) *proxy {
	t.Helper()
	config, err := pgx.ParseConfig(database)
	require.NoError(t, err)
	require.Nil(t, config.TLSConfig, "the proxy reads what passes: give a database without TLS (sslmode=disable)")
	p := &proxy{config: config, links: map[*link]struct{}{}}
	p.listener, err = net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			client, err := p.listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { p.serveConn(client) })
		}
	})
	t.Cleanup(func() {
		_ = p.listener.Close()
		p.clearFaults()
		p.cutLinks()
		serving.Wait()
	})
	return p
}

// databaseURL returns the way to the database through the proxy.
func (p *proxy) databaseURL() string {
	user := url.User(p.config.User)
	if p.config.Password != "" {
		user = url.UserPassword(p.config.User, p.config.Password)
	}
	u := url.URL{Scheme: "postgres", User: user, Host: p.listener.Addr().String(), Path: p.config.Database, RawQuery: "sslmode=disable"}
	return u.String()
}

// injectFault has a fault asked about all that comes.
func (p *proxy) injectFault(f fault) { p.fault.Store(&f) }

// clearFaults has everything passed on, and everybody let in.
func (p *proxy) clearFaults() {
	p.fault.Store(nil)
	p.away.Store(false)
}

// cutLinks ends all connections.
func (p *proxy) cutLinks() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.cut()
	}
}

// goOffline is a server that goes: connections end, and nobody is let in until heal.
func (p *proxy) goOffline() {
	p.away.Store(true)
	p.cutLinks()
}

// countLinks counts the connections.
func (p *proxy) countLinks() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links)
}

func (p *proxy) serveConn(client net.Conn) {
	defer func() { _ = client.Close() }()
	if p.away.Load() {
		return
	}
	network, address := pgconn.NetworkAddress(p.config.Host, p.config.Port)
	server, err := net.Dial(network, address)
	if err != nil {
		return
	}
	l := &link{client: client, server: server, prepared: map[string]string{}}
	p.mu.Lock()
	p.links[l] = struct{}{}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.links, l)
	}()
	if p.away.Load() { // who came while it went
		l.cut()
	}
	var both sync.WaitGroup
	both.Go(func() { defer l.cut(); p.forwardMessages(l, client, server, false) })
	both.Go(func() { defer l.cut(); p.forwardMessages(l, server, client, true) })
	both.Wait()
}

// cut ends the connection on both sides, at once.
func (l *link) cut() {
	for _, c := range []net.Conn{l.client, l.server} {
		if tcp, is := c.(*net.TCPConn); is {
			_ = tcp.SetLinger(0) // a reset, as from a server that is gone
		}
		_ = c.Close()
	}
}

// forwardMessages passes on what one side says, until either ends. What a client says first has no kind.
func (p *proxy) forwardMessages(l *link, from, to net.Conn, reply bool) {
	in := bufio.NewReaderSize(from, 64<<10)
	if !reply {
		first, err := readMessage(in, 0)
		if err != nil {
			return
		}
		if _, err := to.Write(first); err != nil {
			return
		}
	}
	for {
		raw, err := readMessage(in, 1)
		if err != nil {
			return
		}
		m := &message{link: l, reply: reply, kind: raw[0], raw: raw}
		l.trackStatement(m)
		if f := p.fault.Load(); f != nil && !(*f)(m) {
			continue
		}
		if _, err := to.Write(m.raw); err != nil {
			return
		}
	}
}

// readMessage reads a message: a kind of so many bytes, four bytes with the length of what follows and of themselves, and that.
func readMessage(in io.Reader, kind int) ([]byte, error) {
	head := make([]byte, kind+4)
	if _, err := io.ReadFull(in, head); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint32(head[kind:]))
	if n < 4 {
		return nil, errors.New("not the protocol of Postgres")
	}
	raw := make([]byte, kind+n)
	_, err := io.ReadFull(in, raw[copy(raw, head):])
	return raw, err
}

// trackStatement finds out which statement a message is about.
func (l *link) trackStatement(m *message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !m.reply && m.kind == kindParse: // the name of a statement and the statement
		l.prepared[m.stringAt(0)] = m.stringAt(1)
	case !m.reply && m.kind == kindBind: // the name of a portal and that of a statement
		m.statement = l.prepared[m.stringAt(1)]
		l.running = append(l.running, m.statement)
	case !m.reply && m.kind == kindQuery:
		m.statement = m.stringAt(0)
		l.running = append(l.running, m.statement)
	case m.reply && (m.kind == kindComplete || m.kind == kindEmpty):
		m.tag = m.stringAt(0)
		if len(l.running) > 0 {
			m.statement, l.running = l.running[0], l.running[1:]
		}
	case m.reply && m.kind == kindError:
		l.running = nil // what was sent with it is passed over
	}
}

// stringAt returns one of the texts that a message begins with, after its kind and its length.
func (m *message) stringAt(n int) string {
	texts := strings.SplitN(string(m.raw[5:]), "\x00", n+2)
	if n >= len(texts) {
		return ""
	}
	return texts[n]
}

// isRequestFor reports whether the message asks for a statement that contains a text, in upper or lower case.
func (m *message) isRequestFor(text string) bool {
	return !m.reply && (m.kind == kindBind || m.kind == kindQuery) && m.isAbout(text)
}

func (m *message) isAbout(text string) bool {
	return strings.Contains(strings.ToLower(m.statement), strings.ToLower(text))
}

// isCompletionOf reports whether the message says that a statement is done that contains a text, in upper or lower case.
func (m *message) isCompletionOf(text string) bool {
	return m.reply && m.kind == kindComplete && m.isAbout(text)
}

// messageOf makes a message of texts.
func messageOf(kind byte, texts ...string) []byte {
	body := strings.Join(texts, "\x00") + "\x00"
	raw := binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(body)+4))
	return append(raw, body...)
}
