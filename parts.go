package latchkey

import (
	"cmp"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

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

// parts are what the objects of a client share. The fields do not change after newParts.
type parts struct {
	id      string
	config  config
	rueidis rueidis.Client
	owned   bool // this library opened the rueidis client, and closes it
	cluster bool
	clock   func() lease.Stamp

	sender         *transport.Sender
	waitQueues     *line.Table
	waiting        line.Waiting
	notifier       *pubsub.Notifier
	watchdog       *renewal.Watchdog
	undo           *undo.Undoer
	confirmCalls   *transport.Replication // nil if no confirmation is needed
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

	last atomic.Uint64 // the last number given out

	kindStatesMu sync.Mutex
	kindStates   map[keyspace.Kind]any // see kindState

	mu      sync.RWMutex
	closing chan struct{} // closed when Close begins: no new work
	working sync.WaitGroup
}

// newParts makes the parts of a client, with checked settings. topology knows the connections of a rueidis client
// that this library opened. If it is nil, the rueidis client is borrowed.
func newParts(client rueidis.Client, config config, r *report.Reporter, topology *transport.Topology) (*parts, error) {
	c := &parts{
		id:         identity.NewClientID(),
		config:     config,
		reporter:   r,
		rueidis:    client,
		owned:      topology != nil,
		cluster:    client.Mode() == rueidis.ClientModeCluster,
		clock:      lease.SystemClock,
		publish:    "PUBLISH",
		kindStates: map[keyspace.Kind]any{},
		leaseMS:    script.MillisText(config.Lease),
		staleMS:    script.MillisText(config.StaleWaiterTimeout),
		closing:    make(chan struct{}),
	}
	if config.TimeFencing {
		c.tokenFloor = "1"
	}
	if config.clock != nil {
		c.clock = config.clock
	}
	c.initSender(topology)
	sharded, err := c.queryAtStart()
	if err != nil {
		return nil, err
	}
	if sharded {
		c.publish = "SPUBLISH"
	}
	c.notifier = pubsub.New(c.sender, reportsOfMessages(c.reporter), c.id, 2*config.PollCeiling, sharded)
	c.notifier.Counts = !c.cluster
	c.watchdog = c.newWatchdog()
	c.undo = undo.New(c.sender, c.clock)
	givenUp := func(record string) { c.reporter.Log(report.NoticeGivenUp, record) }
	c.sessions = undo.NewSessions(c.undo, c.id, c.number, givenUp)
	c.waitQueues = line.NewTable()
	c.waiting = line.Waiting{Table: c.waitQueues, Counts: line.NewCounts(), Closing: c.closing, Trouble: c.logTrouble}
	c.inbox = c.newInbox(c.notifier.Add)
	c.notifier.Unclaimed = c.inbox.Unclaimed
	c.record = labels.NewRecord(c.labelConfig())
	c.labels = labels.NewKnown(c.record)
	return c, nil
}

// number returns a number that this client has not used yet.
func (c *parts) number() uint64 { return c.last.Add(1) }

// newInbox makes the inbox of the client. subscribe begins to listen to a channel.
func (c *parts) newInbox(subscribe func(*pubsub.Subscription)) *inbox.Inbox {
	return inbox.New(inbox.Config{
		Client:      c.id,
		Sharded:     c.publish == "SPUBLISH",
		Counts:      !c.cluster,
		PollCeiling: c.config.PollCeiling,
		Subscribe:   subscribe,
	})
}

// labelConfig returns what the labels of clients need of this one.
func (c *parts) labelConfig() labels.Config {
	return labels.Config{ClientID: c.id, Label: c.config.Label, Sender: c.sender, Cluster: c.cluster, Clock: c.clock,
		Begin: c.begin, Done: c.done,
		Refused: func(err error) { c.reporter.Log(report.NoticeLabel, c.config.Label, slog.Any("error", err)) }}
}

// initSender makes what sends the commands of the client. topology is as for makeEngine.
func (c *parts) initSender(topology *transport.Topology) {
	c.topology = cmp.Or(topology, transport.NewTopology(c.cluster, c.config.MaxInFlight))
	sends := c.rueidis
	if !c.owned {
		sends = transport.NotStraying(sends)
	}
	c.sender = &transport.Sender{
		Client:          sends,
		CancelsPromptly: c.owned,
		Topology:        c.topology,
		Patience:        c.config.RetryBudget,
		Clock:           c.config.clock,
	}
	c.confirmCalls = c.config.confirmation(c.id, maxWaits)
}

// newWatchdog makes the watchdog. Its renewals must not queue behind acquisitions for replicas that
// confirm them, so they do that apart.
func (c *parts) newWatchdog() *renewal.Watchdog {
	waits := 2 * renewal.Flights(c.topology.Cluster) // renewals that timed out may still wait
	return renewal.New(renewal.Config{
		Clock:       c.clock,
		Topology:    c.topology,
		PollCeiling: c.config.PollCeiling,
		Send:        renewal.SendOver(c.sender, c.config.confirmation(c.id, waits)),
		Failed: func(lock string, holds int, err error) {
			c.reporter.Log(report.NoticeRenewal, lock, slog.Int("holds", holds), slog.Any("error", err))
		},
	})
}

// queryAtStart finds out what must be known before the first lock: whether messages are
// sharded, and, if replicas have to confirm, whether the server knows WAIT.
func (c *parts) queryAtStart() (sharded bool, err error) {
	if sharded, err = pubsub.MeetCluster(c.sender, c.config.Sharding, c.config.RetryBudget); err != nil {
		return false, fault.Op("connect", "cluster", unanswered(err))
	}
	if c.config.LazyConnect {
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

// leaseText returns a lease as it is sent. For the default lease it allocates nothing.
func (c *parts) leaseText(lease time.Duration) string {
	if lease == c.config.Lease {
		return c.leaseMS
	}
	return script.MillisText(lease)
}

// logTrouble logs that a call waits for the server to recover.
func (c *parts) logTrouble(name string, err error) {
	trouble := report.NoticeTrouble
	if transport.Classify(err) == transport.TryLater {
		trouble = report.NoticeBusyServer
	}
	c.reporter.Log(trouble, name, slog.Any("error", err))
}

// pollPause is how long a waiter relies on messages this time: the ceiling less up to a
// quarter, at random, so that clients do not poll at the same time.
func (c *parts) pollPause() time.Duration {
	ceiling := c.config.PollCeiling
	return ceiling - rand.N(ceiling/4+1)
}

// patienceInFront is how long a waiter is in front before it looks for what it waits for.
func (c *parts) patienceInFront() time.Duration { return c.config.StaleWaiterTimeout / 5 }

// reportsOfMessages returns what logs that messages are missing.
func reportsOfMessages(r *report.Reporter) pubsub.Reports {
	logs := func(n report.Notice) func(string, error) {
		return func(subject string, err error) { r.Log(n, subject, slog.Any("error", err)) }
	}
	return pubsub.Reports{Lost: logs(report.NoticeSubscription), BeatRefused: logs(report.NoticeBeat), ChannelRefused: logs(report.NoticeSubscribe)}
}
