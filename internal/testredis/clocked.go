package testredis

import (
	"bufio"
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/transport"
	"github.com/latchkey-go/latchkey/lua"
)

// Epoch is the time of a [Clocked] server at its start, in µs since 1970.
const Epoch int64 = 1_900_000_000_000_000

// Clocked is a server whose clock the test moves. It has one connection, on which commands are
// sent.
type Clocked struct {
	Name    string
	Network string
	Address string
	// Set moves the clock, to µs since 1970.
	Set func(micros int64)
	// Full makes the server refuse commands that need memory, or accept them again; nil if the
	// server cannot.
	Full func(on bool)
	// Pause is how much time passes between two commands, in µs.
	Pause int64
	// Early says that a key is already gone in the last ms of its time.
	Early bool

	conn    net.Conn
	replies *bufio.Reader
	loaded  map[string]string // texts of scripts by digest
	names   map[string]string // names of the scripts of the library by digest
}

// Embedded starts an embedded server with a clock. It has no memory limit, and expires keys to the
// µs. Its pause is a whole ms, so that times come out even.
func Embedded(t *testing.T) *Clocked {
	t.Helper()
	redis := Run(t)
	redis.SetTime(time.UnixMicro(Epoch))
	s := &Clocked{Name: "embedded", Network: "tcp", Address: redis.Addr(), Pause: 1000, Early: true}
	s.Set = func(micros int64) { redis.SetTime(time.UnixMicro(micros)) }
	s.connect(t)
	return s
}

func (s *Clocked) connect(t *testing.T) {
	t.Helper()
	s.conn = s.dial(t)
	s.replies, s.loaded, s.names = bufio.NewReader(s.conn), map[string]string{}, map[string]string{}
	for name, script := range libraryScripts() {
		s.loaded[script.Digest], s.names[script.Digest] = script.Text, name
	}
}

// dial opens a connection, which the end of the test closes.
func (s *Clocked) dial(t *testing.T) net.Conn {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(context.Background(), s.Network, s.Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// libraryScripts returns the scripts of the library by name, assembled once for all tests.
var libraryScripts = sync.OnceValue(func() map[string]transport.Command {
	scripts := map[string]transport.Command{}
	for _, name := range lua.Names() {
		scripts[name] = transport.NewScript(lua.Text(name))
	}
	return scripts
})

// ScriptName returns the name of the script of the library with that digest.
func (s *Clocked) ScriptName(digest string) string { return s.names[digest] }

// Listen keeps a connection that is subscribed to channels, and discards the messages.
func (s *Clocked) Listen(t *testing.T, channels ...string) {
	t.Helper()
	ear := s.subscribe(t, channels)
	go func() { _, _ = io.Copy(io.Discard, ear.conn) }()
}

// Hear returns the messages on channels from now on.
func (s *Clocked) Hear(t *testing.T, channels ...string) <-chan string {
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
func (s *Clocked) subscribe(t *testing.T, channels []string) *Clocked {
	t.Helper()
	conn := s.dial(t)
	ear := &Clocked{conn: conn, replies: bufio.NewReader(conn)}
	ear.write(append([]string{"SUBSCRIBE"}, channels...))
	for range channels {
		ear.read()
	}
	return ear
}
