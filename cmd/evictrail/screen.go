package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

// topKey is a key, as the character that it writes or as one of these names.
type topKey string

// The keys that write no character.
const (
	keyCtrlC     topKey = "ctrl+c"
	keyEnter     topKey = "enter"
	keyEsc       topKey = "esc"
	keyBackspace topKey = "backspace"
	keyUp        topKey = "up"
	keyDown      topKey = "down"
	keyLeft      topKey = "left"
	keyHome      topKey = "home"
	keyEnd       topKey = "end"
	keyPageUp    topKey = "pgup"
	keyPageDown  topKey = "pgdown"
)

// keySequences are what terminals send for keys.
var keySequences = []struct {
	sent string
	key  topKey
}{
	{"\x1b[A", keyUp}, {"\x1bOA", keyUp}, {"\x1b[B", keyDown}, {"\x1bOB", keyDown}, {"\x1b[D", keyLeft}, {"\x1bOD", keyLeft},
	{"\x1b[H", keyHome}, {"\x1bOH", keyHome}, {"\x1b[1~", keyHome}, {"\x1b[F", keyEnd}, {"\x1bOF", keyEnd}, {"\x1b[4~", keyEnd},
	{"\x1b[5~", keyPageUp}, {"\x1b[6~", keyPageDown}, {"\x03", keyCtrlC}, {"\r", keyEnter}, {"\n", keyEnter}, {"\x7f", keyBackspace}, {"\b", keyBackspace},
}

// parseKeys reads the keys that a terminal sent at once. Those that are not known are left out.
func parseKeys(sent string) []topKey {
	var keys []topKey
	for sent != "" {
		key, rest := parseKey(sent)
		if key != "" {
			keys = append(keys, key)
		}
		sent = rest
	}
	return keys
}

// parseKey reads one key, empty where it is not known, and returns what follows.
func parseKey(sent string) (key topKey, rest string) {
	for _, s := range keySequences {
		if after, is := strings.CutPrefix(sent, s.sent); is {
			return s.key, after
		}
	}
	switch after, escaped := strings.CutPrefix(sent, "\x1b"); {
	case escaped && (after == "" || after[0] == '\x1b'):
		return keyEsc, after
	case escaped && (after[0] == '[' || after[0] == 'O'): // a key that we have no use for: it ends with a letter or ~
		end := strings.IndexFunc(after[1:], func(r rune) bool { return r >= '@' && r <= '~' })
		if end < 0 {
			return "", ""
		}
		return "", after[1:][end+1:]
	case escaped:
		return "", after[1:]
	}
	r, size := utf8.DecodeRuneInString(sent)
	if r == utf8.RuneError || r < ' ' {
		return "", sent[size:]
	}
	return topKey(sent[:size]), sent[size:]
}

// sizeEvery is how often the size of the terminal is looked at: not every system has a signal for it.
const sizeEvery = 200 * time.Millisecond

// runScreen shows a model on a terminal until it is over or the context ends, and then leaves the terminal as it was.
func runScreen(ctx context.Context, m *topModel, in, out *os.File) (err error) {
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return fmt.Errorf("read keys of the terminal: %w", err)
	}
	ctx, stop := context.WithCancel(ctx)
	defer func() {
		stop()
		_, _ = io.WriteString(out, "\x1b[?25h\x1b[?1049l")
		err = errors.Join(err, term.Restore(int(in.Fd()), before))
	}()
	_, _ = io.WriteString(out, "\x1b[?1049h\x1b[?25l") // the other screen, without a cursor
	messages := make(chan topMessage)
	send := func(message topMessage) {
		select {
		case messages <- message:
		case <-ctx.Done():
		}
	}
	run := func(task topTask) {
		if task != nil {
			go func() { send(task()) }()
		}
	}
	go readKeys(in, send)
	run(m.waitForLook)
	size := time.NewTicker(sizeEvery)
	defer size.Stop()
	for shown := ""; !m.over; {
		if screen := m.renderScreen(); screen != shown {
			_, _ = io.WriteString(out, "\x1b[H"+strings.ReplaceAll(screen, "\n", "\x1b[K\r\n")+"\x1b[K\x1b[J")
			shown = screen
		}
		select {
		case <-ctx.Done():
			return nil
		case message := <-messages:
			run(message.applyTo(m))
		case <-size.C:
			if width, height, err := term.GetSize(int(out.Fd())); err == nil {
				run(topResized{width, height}.applyTo(m))
			}
		}
	}
	return nil
}

// readKeys sends the keys of a terminal until it is closed; that it is counts as Ctrl-C.
func readKeys(in io.Reader, send func(topMessage)) {
	buffer := make([]byte, 256)
	for {
		n, err := in.Read(buffer)
		for _, key := range parseKeys(string(buffer[:n])) {
			send(key)
		}
		if err != nil {
			send(keyCtrlC)
			return
		}
	}
}
