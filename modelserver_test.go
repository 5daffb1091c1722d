package latchkey

import (
	"bufio"
	"context"
	"crypto/sha1" //nolint:gosec // Redis identifies scripts by it
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/testredis"
	"github.com/latchkey-go/latchkey/internal/transport"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
	"github.com/latchkey-go/latchkey/lua"
)

// modelServer is a server for models, whose clock the test moves.
type modelServer struct {
	name    string
	network string
	address string
	// set moves the clock, to µs since 1970.
	set func(micros int64)
	// full makes the server refuse commands that need memory, or accept them again; nil if the server cannot.
	full func(on bool)
	// pause is how much time passes between two commands, in µs.
	pause int64
	// early says that a key is already gone in the last ms of its time.
	early bool

	conn    net.Conn
	replies *bufio.Reader
	loaded  map[string]string // texts of scripts by digest
	names   map[string]string // names of the scripts of the library by digest
}

// embeddedModelServer starts miniredis. It has no memory limit, and expires keys to the µs. Its pause is a whole ms, so
// that times come out even.
func embeddedModelServer(t *testing.T) *modelServer {
	t.Helper()
	redis := testredis.Run(t)
	redis.SetTime(time.UnixMicro(modelEpoch))
	s := &modelServer{name: "embedded", network: "tcp", address: redis.Addr(), pause: 1000, early: true}
	s.set = func(micros int64) { redis.SetTime(time.UnixMicro(micros)) }
	s.connect(t)
	return s
}

func (s *modelServer) connect(t *testing.T) {
	t.Helper()
	conn, err := net.Dial(s.network, s.address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	s.conn, s.replies, s.loaded, s.names = conn, bufio.NewReader(conn), map[string]string{}, map[string]string{}
	for name, script := range libraryScripts() {
		s.loaded[script.Digest], s.names[script.Digest] = script.Text, name
	}
}

// libraryScripts returns the scripts of the library by name, assembled once for all tests.
var libraryScripts = sync.OnceValue(func() map[string]transport.Command {
	scripts := map[string]transport.Command{}
	for _, name := range lua.Names() {
		scripts[name] = transport.NewScript(lua.Text(name))
	}
	return scripts
})

// listen keeps a connection that is subscribed to channels, and discards the messages.
func (s *modelServer) listen(t *testing.T, channels ...string) {
	t.Helper()
	ear := s.subscribe(t, channels)
	go func() { _, _ = io.Copy(io.Discard, ear.conn) }()
}

// hears returns the messages on channels from now on.
func (s *modelServer) hears(t *testing.T, channels ...string) <-chan string {
	t.Helper()
	ear, heard := s.subscribe(t, channels), make(chan string, 100)
	go func() {
		defer func() { _ = recover() }() // the test closes the connection at the end
		for {
			message, is := ear.read().([]any)
			if is && len(message) == 3 {
				text, _ := message[2].(string)
				heard <- text
			}
		}
	}()
	return heard
}

// subscribe opens a connection that is subscribed to channels.
func (s *modelServer) subscribe(t *testing.T, channels []string) *modelServer {
	t.Helper()
	conn, err := net.Dial(s.network, s.address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	ear := &modelServer{conn: conn, replies: bufio.NewReader(conn)}
	ear.write(append([]string{"SUBSCRIBE"}, channels...))
	for range channels {
		ear.read()
	}
	return ear
}

// replyError is an error reply of the server.
type replyError string

func (e replyError) Error() string { return string(e) }

// do executes a command. The reply is nil, an int64, a string, a []any or a replyError.
func (s *modelServer) do(words ...string) any {
	s.write(words)
	reply := s.read()
	if err, is := reply.(replyError); is && strings.HasPrefix(string(err), "NOSCRIPT") {
		words = append([]string{"EVAL", s.loaded[words[1]]}, words[2:]...)
		s.write(words)
		reply = s.read()
	}
	return reply
}

func (s *modelServer) write(words []string) {
	out := make([]byte, 0, 512)
	out = append(out, '*')
	out = strconv.AppendInt(out, int64(len(words)), 10)
	for _, word := range words {
		out = append(out, "\r\n$"...)
		out = strconv.AppendInt(out, int64(len(word)), 10)
		out = append(out, "\r\n"...)
		out = append(out, word...)
	}
	out = append(out, "\r\n"...)
	if _, err := s.conn.Write(out); err != nil {
		panic(fmt.Errorf("model: writing to the server: %w", err))
	}
}

func (s *modelServer) read() any {
	line, err := s.replies.ReadString('\n')
	if err != nil || len(line) < 3 {
		panic(fmt.Errorf("model: reading from the server: %q, %w", line, err))
	}
	text := line[1 : len(line)-2]
	switch line[0] {
	case '+':
		return text
	case '-':
		return replyError(text)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		panic(fmt.Errorf("model: a reply from the server: %q, %w", line, err))
	case line[0] == ':':
		return n
	case n < 0:
		return nil
	case line[0] == '$':
		body := make([]byte, n+2)
		if _, err := io.ReadFull(s.replies, body); err != nil {
			panic(fmt.Errorf("model: reading from the server: %w", err))
		}
		return string(body[:n])
	}
	list := make([]any, n)
	for i := range list {
		list[i] = s.read()
	}
	return list
}

// must is do for a command that must succeed.
func (s *modelServer) must(words ...string) any {
	reply := s.do(words...)
	if err, is := reply.(replyError); is {
		panic(fmt.Errorf("model: %q: %w", words[0], err))
	}
	return reply
}

// script executes a script that is not part of the library.
func (s *modelServer) script(script modelScript, keys []string, args ...string) any {
	return s.do(script.words(s, keys, args)...)
}

// modelScript is a script that is not part of the library.
type modelScript struct{ text, digest string }

func newModelScript(text string) modelScript {
	digest := sha1.Sum([]byte(text)) //nolint:gosec // Redis identifies scripts by it
	return modelScript{text, hex.EncodeToString(digest[:])}
}

func (m modelScript) words(s *modelServer, keys, args []string) []string {
	s.loaded[m.digest] = m.text
	words := append([]string{"EVALSHA", m.digest, strconv.Itoa(len(keys))}, keys...)
	return append(words, args...)
}

// recorder replaces the connection of a Client: it records what would be sent, and refuses it. It executes only looks,
// which change nothing, because later commands depend on their replies.
type recorder struct {
	rueidis.Client

	sent []string
}

func (r *recorder) Do(ctx context.Context, c rueidis.Completed) rueidis.RedisResult {
	words := c.Commands()
	if isCommand(script.LatchLook, words[1]) || isCommand(script.Inspect, words[1]) {
		return r.Client.Do(ctx, c)
	}
	if r.sent == nil { // the next command queries why the first was refused
		r.sent = slices.Clone(words)
		if words[0] == "EVAL" { // the first use of a script
			script := newModelScript(words[1])
			r.sent[0], r.sent[1] = "EVALSHA", script.digest
		}
	}
	return rueidis.NewErrorResult(outcome.Refusal(errors.New("recorded")))
}

func isCommand(cmd transport.Command, word string) bool {
	return word == cmd.Digest || word == cmd.Text
}

func (*recorder) Mode() rueidis.ClientMode { return rueidis.ClientModeStandalone }
func (*recorder) Close()                   {}
