package latchkey

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/base/async"
	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/inbox"
	"github.com/latchkey-go/latchkey/internal/engine/labels"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/pubsub"
	"github.com/latchkey-go/latchkey/internal/engine/renewal"
	"github.com/latchkey-go/latchkey/internal/engine/report"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/engine/undo"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// engine is the inside of a client: what its locks and other objects share.
type engine struct {
	id      string
	options config
	rueidis rueidis.Client
	owned   bool
	cluster bool
	clock   func() lease.Stamp

	sender         *transport.Sender
	waitQueues     *line.Table
	waiting        line.Waiting
	notifier       *pubsub.Notifier
	watchdog       *renewal.Watchdog
	undo           *undo.Undoer
	confirmCalls   *transport.Replication // nil if no confirmation is needed
	registry       *registry
	inbox          *inbox.Inbox
	topology       *transport.Topology
	serverIdentity serverIdentity
	sessions       *undo.Sessions
	reporter       *report.Reporter
	record         *labels.Record
	labels         *labels.Known

	publish    string // the command that publishes
	tokenFloor string // '1' if tokens follow the clock
	leaseMS    string // the default lease, as sent
	staleMS    string // the stale-waiter timeout, as sent

	kindStatesMu sync.Mutex
	kindStates   map[keyspace.Kind]any // see kindState

	mu      sync.RWMutex
	closing chan struct{} // closed when Close begins: no new work
	working sync.WaitGroup
	closed  chan struct{} // closed when Close is done
	result  error

	handle *clientHandle
}

// clientHandle is what the program has of an engine: a Client.
type clientHandle struct{ engine *engine }

// makeEngine makes the inside of a client, with checked settings. topology knows the connections of a rueidis client that this
// package opened. If it is nil, the rueidis client is borrowed.
func makeEngine(client rueidis.Client, options config, r *report.Reporter, topology *transport.Topology) (*engine, error) {
	c := &engine{
		id:         identity.NewClientID(),
		options:    options,
		reporter:   r,
		rueidis:    client,
		owned:      topology != nil,
		cluster:    client.Mode() == rueidis.ClientModeCluster,
		clock:      lease.SystemClock,
		publish:    "PUBLISH",
		kindStates: map[keyspace.Kind]any{},
		leaseMS:    script.MillisText(options.Lease),
		staleMS:    script.MillisText(options.StaleWaiterTimeout),
		closing:    make(chan struct{}),
		closed:     make(chan struct{}),
	}
	c.handle = &clientHandle{c}
	if options.TimeFencing {
		c.tokenFloor = "1"
	}
	if options.clock != nil {
		c.clock = options.clock
	}
	c.initSender(topology)
	sharded, err := c.queryAtStart()
	if err != nil {
		return nil, err
	}
	if sharded {
		c.publish = "SPUBLISH"
	}
	c.notifier = pubsub.New(c.sender, reportsOfMessages(c.reporter), c.id, 2*options.PollCeiling, sharded)
	c.notifier.Counts = !c.cluster
	c.watchdog = c.newWatchdog()
	c.undo = undo.New(c.sender, c.clock)
	c.registry = newRegistry(c)
	givenUp := func(record string) { c.reporter.Log(report.NoticeGivenUp, record) }
	c.sessions = undo.NewSessions(c.undo, c.id, c.registry.number, givenUp)
	c.waitQueues = line.NewTable()
	c.waiting = line.Waiting{Table: c.waitQueues, Counts: line.NewCounts(), Closing: c.closing, Trouble: c.logTrouble}
	c.inbox = c.newInbox(c.notifier.Add)
	c.notifier.Unclaimed = c.inbox.Unclaimed
	c.record = labels.NewRecord(c.labelConfig())
	c.labels = labels.NewKnown(c.record)
	return c, nil
}

// labelConfig returns what the labels of clients need of this one.
func (c *engine) labelConfig() labels.Config {
	return labels.Config{ClientID: c.id, Label: c.options.label(), Sender: c.sender, Cluster: c.cluster, Clock: c.clock,
		Begin: c.begin, Done: c.working.Done,
		Refused: func(err error) { c.reporter.Log(report.NoticeLabel, c.options.label(), slog.Any("error", err)) }}
}

// initSender makes what sends the commands of the client. topology is as for makeEngine.
func (c *engine) initSender(topology *transport.Topology) {
	c.topology = cmp.Or(topology, transport.NewTopology(c.cluster, c.options.MaxInFlight))
	sends := c.rueidis
	if !c.owned {
		sends = transport.NotStraying(sends)
	}
	c.sender = &transport.Sender{
		Client:          sends,
		CancelsPromptly: c.owned,
		Topology:        c.topology,
		Patience:        c.options.RetryBudget,
		Clock:           c.options.clock,
	}
	c.confirmCalls = c.options.confirmation(c.id, maxWaits)
}

// newWatchdog makes the watchdog. Its renewals must not queue behind acquisitions for replicas that
// confirm them, so they do that apart.
func (c *engine) newWatchdog() *renewal.Watchdog {
	waits := 2 * renewal.Flights(c.topology.Cluster) // renewals that timed out may still wait
	return renewal.New(renewal.Config{
		Clock:       c.clock,
		Topology:    c.topology,
		PollCeiling: c.options.PollCeiling,
		Send:        renewal.SendOver(c.sender, c.options.confirmation(c.id, waits)),
		Failed: func(lock string, holds int, err error) {
			c.reporter.Log(report.NoticeRenewal, lock, slog.Int("holds", holds), slog.Any("error", err))
		},
	})
}

// queryAtStart finds out what must be known before the first lock: whether messages are
// sharded, and, if replicas have to confirm, whether the server knows WAIT.
func (c *engine) queryAtStart() (sharded bool, err error) {
	if sharded, err = pubsub.MeetCluster(c.sender, c.options.Sharding, c.options.RetryBudget); err != nil {
		return false, fault.Op("connect", "cluster", unanswered(err))
	}
	if c.options.LazyConnect {
		return sharded, nil
	}
	if err := waitRefused(c.confirmCalls.Check(c.sender)); err != nil {
		return false, fault.Op("connect", "replicas", unanswered(err))
	}
	return sharded, nil
}

// unanswered adds ErrUnavailable to the error of a failed connection attempt, unless the
// server refused or the options are invalid.
func unanswered(err error) error {
	if errors.Is(err, fault.ErrInvalid) || transport.Classify(err) == transport.Refused {
		return err
	}
	return transport.Unavailable(err)
}

// kindState returns the state that one kind of lock keeps for all its locks in a client, such as the list of
// their waiters. It makes the state on first use. Close calls its method close, if it has one.
func (c *engine) kindState(kind keyspace.Kind, newState func(*engine) any) any {
	c.kindStatesMu.Lock()
	defer c.kindStatesMu.Unlock()
	state := c.kindStates[kind]
	if state == nil {
		state = newState(c)
		c.kindStates[kind] = state
	}
	return state
}

// closeKindStates closes all kind states when no lock uses them any more.
func (c *engine) closeKindStates() {
	c.kindStatesMu.Lock()
	states := slices.Collect(maps.Values(c.kindStates))
	c.kindStatesMu.Unlock()
	for _, state := range states {
		if s, is := state.(interface{ close() }); is {
			s.close()
		}
	}
}

// begin registers a call, which Close then waits for. It returns an error, and the call sends nothing, if Close
// has begun or ctx has ended. Every call of the program that takes a context begins here, or in endedBefore.
func (c *engine) begin(ctx context.Context) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if async.IsClosed(c.closing) {
		return fault.ErrClosed
	}
	if err := endedBefore(ctx); err != nil {
		return err
	}
	c.working.Add(1)
	return nil
}

// endedBefore returns the error of a call whose context has ended before it began: that of the context alone,
// since nothing was sent and nothing is known of the server.
func endedBefore(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	err := fault.ContextError(ctx)
	if fault.IsWaitOver(err) { // of a call of which this one is a step
		return transport.Unavailable(err)
	}
	return err
}

// send sends a call until it is answered, the client's patience is over, or Close begins.
func (c *engine) send(ctx context.Context, each script.Call) (transport.Answer, error) {
	return c.sender.Call(ctx, c.closing, each.Cmd, each.Keys, each.Args)
}

// leaseText returns a lease as it is sent. For the default lease it allocates nothing.
func (c *engine) leaseText(lease time.Duration) string {
	if lease == c.options.Lease {
		return c.leaseMS
	}
	return script.MillisText(lease)
}

// logTrouble logs that a call waits for the server to recover.
func (c *engine) logTrouble(name string, err error) {
	trouble := report.NoticeTrouble
	if transport.Classify(err) == transport.TryLater {
		trouble = report.NoticeBusyServer
	}
	c.reporter.Log(trouble, name, slog.Any("error", err))
}

// pollPause is how long a waiter relies on messages this time: the ceiling less up to a
// quarter, at random, so that clients do not poll at the same time.
func (c *engine) pollPause() time.Duration {
	ceiling := c.options.PollCeiling
	return ceiling - rand.N(ceiling/4+1)
}

// patienceInFront is how long a waiter is in front before it looks for what it waits for.
func (c *engine) patienceInFront() time.Duration { return c.options.StaleWaiterTimeout / 5 }

// reportsOfMessages returns what logs that messages are missing.
func reportsOfMessages(r *report.Reporter) pubsub.Reports {
	logs := func(n report.Notice) func(string, error) {
		return func(subject string, err error) { r.Log(n, subject, slog.Any("error", err)) }
	}
	return pubsub.Reports{Lost: logs(report.NoticeSubscription), BeatRefused: logs(report.NoticeBeat), ChannelRefused: logs(report.NoticeSubscribe)}
}
