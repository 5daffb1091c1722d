package model

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/inbox"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/owners"
	"github.com/latchkey-go/latchkey/internal/engine/pubsub"
	"github.com/latchkey-go/latchkey/internal/engine/report"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/engine/undo"
	"github.com/latchkey-go/latchkey/internal/primitive/admin"
	"github.com/latchkey-go/latchkey/internal/testredis"
	"github.com/latchkey-go/latchkey/internal/transport/nodes"
)

const modelName = "thing" // of the object that a sequence uses

// settings are those of the clients.
var settings = testredis.NewSettings()

// world is the environment of a sequence: a server, its time, clients, and the wire between them,
// which loses, doubles and delays messages.
type world struct {
	*testredis.Clocked

	now     int64 // µs since 1970, on the server and on all clients
	clients []*core.Parts
	wire    *recorder
	log     []string
	late    []*message // copies that have not arrived yet
	steady  bool       // the wire does no damage
	limited bool       // the server has no memory
	elapsed func()     // called when time has passed, or nil
}

// violation is a property that does not hold.
type violation struct{ text string }

func newWorld(t *testing.T, s *testredis.Clocked) *world {
	t.Helper()
	builders, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{s.Address}, ForceSingleClient: true, DisableCache: true,
		DialCtxFn: func(ctx context.Context, _ string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return d.DialContext(ctx, s.Network, s.Address)
		},
	})
	require.NoError(t, err)
	t.Cleanup(builders.Close)
	w := &world{Clocked: s, wire: &recorder{Client: builders}}
	for range 3 {
		config := settings.Config
		config.Clock = w.stamp
		quiet := report.New(slog.New(slog.DiscardHandler), nil)
		c, err := core.New(w.wire, config, quiet, nodes.NewTopology(false, config.MaxInFlight))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, owners.Close(context.Background(), c)) })
		w.clients = append(w.clients, c)
	}
	w.begin()
	for _, c := range w.clients {
		s.Listen(t, "latchkey:{"+c.ID+"}") // a client that does not listen counts as gone
	}
	return w
}

// begin prepares a sequence: the server is empty, and all names start over.
func (w *world) begin() {
	w.now, w.log, w.late, w.steady, w.elapsed = testredis.Epoch, nil, nil, false, nil
	if w.limited {
		w.limit(false)
	}
	w.Must("FLUSHALL")
	w.Set(w.now)
	for i, c := range w.clients {
		startOver(c, fmt.Sprintf("%08d-0000-4000-8000-000000000000", i+1), true)
	}
}

// startOver gives a client a name and no memory.
func startOver(c *core.Parts, id string, listens bool) {
	c.ID = id
	clear(owners.Of(c).ByName)
	clear(owners.Of(c).Names)
	c.Numbers.Store(0)
	c.Lines = line.NewTable()
	c.Waiting.Table = c.Lines
	c.Sessions = undo.NewSessions(c.Undo, c.ID, c.Number, nil)
	c.Inbox = c.NewInbox(func(s *pubsub.Subscription) {
		s.Confirmed.Store(listens)
		s.Refused.Store(!listens)
	})
	admin.RegisterGrants(c)
	nobody := inbox.NewSlot("", "nobody", nil)
	c.Inbox.Listen(&nobody)
	c.Inbox.Forget(&nobody)
}

// pollerID is the client that does not listen in a world that has one.
const pollerID = "77777777-0000-4000-8000-000000000000"

// withPoller makes the last client one that does not listen.
func (w *world) withPoller() { startOver(w.clients[len(w.clients)-1], pollerID, false) }

// polls reports whether the client of an owner, or of an entry in a queue, does not listen.
func (*world) polls(owner string) bool { return strings.HasPrefix(owner, pollerID) }

func (w *world) stamp() lease.Stamp {
	return lease.Stamp{Mono: time.Duration(w.now) * 1000, Wall: time.Duration(w.now) * 1000}
}

// ms returns the time in ms, as scripts see it.
func (w *world) ms() int64 { return w.now / 1000 }

// expired reports whether a key that expires at that time, in ms, is gone.
func (w *world) expired(at int64) bool { return w.ms() > at || w.Early && w.ms() == at }

func (w *world) advance(ms int64) {
	w.moveClock(ms * 1000)
	w.say("%d ms later", ms)
	w.late = slices.DeleteFunc(w.late, func(m *message) bool { return w.now-m.sent > longestDelay })
}

// tick advances the clock by the time between two commands.
func (w *world) tick() { w.moveClock(w.Pause) }

func (w *world) moveClock(micros int64) {
	w.now += micros
	w.Set(w.now)
	if w.elapsed != nil {
		w.elapsed()
	}
}

// longestDelay is the longest delay of a copy of a command, in µs.
const longestDelay = 15 * 60 * 1_000_000

func (w *world) say(format string, args ...any) {
	at := strconv.FormatFloat(float64(w.now-testredis.Epoch)/1_000_000, 'f', 3, 64)
	w.log = append(w.log, fmt.Sprintf("%9ss  ", at)+fmt.Sprintf(format, args...))
}

// fail ends the sequence.
func (w *world) fail(format string, args ...any) {
	panic(violation{fmt.Sprintf(format, args...)})
}

// message is a command in flight.
type message struct {
	what  string // for the log
	words []string
	sent  int64 // µs

	before   func()          // called before each execution, if anything is
	seen     func(reply any) // what the reference makes of each execution, if anything
	answered func(reply any) // what its client does with the answer
	silent   func()          // what its client does if no answer comes
	light    bool            // it must work on a server without memory
}

// record returns the command that a client would send.
func (w *world) record(send func()) []string {
	w.wire.sent = nil
	send()
	return w.wire.sent
}

// words returns the words of a call.
func (w *world) words(c script.Call) []string {
	return w.record(func() { c.Cmd.Send(context.Background(), w.wire, c.Keys, c.Args) })
}

// Fates of a message, 0 to 99: each constant is the first number of its range.
const (
	fateLost      = 56 // executed, but the answer is lost
	fateDouble    = 66 // executed twice in a row
	fateStraggler = 74 // executed and answered, and executed once more later
	fateLate      = 80 // not answered, and executed later
	fateNever     = 87 // not answered and never executed
	fateFull      = 92 // executed while the server has no memory
)

// send sends a message and applies its fate, 0 to 99.
func (w *world) send(m *message, fate int) {
	m.sent = w.now
	if w.steady {
		fate = 0
	}
	switch {
	case fate >= fateFull && w.Full != nil:
		w.limit(true)
		reply := w.execute(m, "without memory")
		w.limit(false)
		if outOfMemory(reply) && m.light {
			w.fail("%s fails on a server without memory: %v", m.what, reply)
		}
		m.answered(reply)
	case fate >= fateNever && fate < fateFull:
		w.say("%s: lost on the way", m.what)
		m.silent()
	case fate >= fateLate && fate < fateNever:
		w.say("%s: held up", m.what)
		w.late = append(w.late, m)
		m.silent()
	case fate >= fateStraggler && fate < fateLate:
		reply := w.execute(m, "another copy is held up")
		w.late = append(w.late, m)
		m.answered(reply)
	case fate >= fateDouble && fate < fateStraggler:
		reply := w.execute(m, "")
		w.execute(m, "again")
		m.answered(reply)
	case fate >= fateLost && fate < fateDouble:
		w.execute(m, "answer lost")
		m.silent()
	default:
		m.answered(w.execute(m, ""))
	}
}

// limit takes the memory from the server, or gives it back.
func (w *world) limit(on bool) {
	w.limited = on
	w.Full(on)
}

func (w *world) execute(m *message, how string) any {
	w.tick()
	if m.before != nil {
		m.before()
	}
	reply := w.Do(m.words...)
	if how != "" {
		how = " (" + how + ")"
	}
	w.say("%s%s -> %s", m.what, how, show(reply))
	if m.seen != nil {
		m.seen(reply)
	}
	return reply
}

// deliver executes a late copy.
func (w *world) deliver(pick int) {
	if len(w.late) == 0 {
		return
	}
	i := pick % len(w.late)
	m := w.late[i]
	w.late = slices.Delete(w.late, i, i+1)
	w.execute(m, "late")
}

func outOfMemory(reply any) bool { return testredis.HasCode(reply, "OOM") }

func show(reply any) string {
	switch r := reply.(type) {
	case nil:
		return "nil"
	case testredis.ReplyError:
		return "error " + strings.Fields(string(r))[0]
	case string:
		return strconv.Quote(r)
	}
	return fmt.Sprint(reply)
}

// everything returns all keys in order.
func (w *world) everything() []string {
	var keys []string
	for _, key := range w.Must("KEYS", "*").([]any) {
		keys = append(keys, key.(string))
	}
	slices.Sort(keys)
	return keys
}
