// Package core has what the objects of a client share: its settings, the parts that send, wait,
// renew and report, how calls of the program begin, and how all of it ends.
package core

import (
	"cmp"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/connect"
	"github.com/latchkey-go/latchkey/internal/engine/inbox"
	"github.com/latchkey-go/latchkey/internal/engine/inspect"
	"github.com/latchkey-go/latchkey/internal/engine/labels"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/pubsub"
	"github.com/latchkey-go/latchkey/internal/engine/renewal"
	"github.com/latchkey-go/latchkey/internal/engine/report"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/engine/undo"
	"github.com/latchkey-go/latchkey/internal/transport"
	"github.com/latchkey-go/latchkey/internal/transport/nodes"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// Parts are what the objects of a client share. The fields do not change after New.
type Parts struct {
	ID      string
	Config  Config
	Rueidis rueidis.Client
	owned   bool // this library opened the rueidis client, and closes it
	Cluster bool
	Clock   func() lease.Stamp

	Sender         *transport.Sender
	Lines          *line.Table
	Waiting        line.Waiting
	Notifier       *pubsub.Notifier
	Watchdog       *renewal.Watchdog
	Undo           *undo.Undoer
	Replication    *transport.Replication // nil if no confirmation is needed
	Inbox          *inbox.Inbox
	Topology       *nodes.Topology
	serverIdentity serverIdentity
	Sessions       *undo.Sessions
	Reporter       *report.Reporter
	Record         *labels.Record
	Labels         *labels.Known
	Inspector      *inspect.Inspector

	Publish    string // the command that publishes
	TokenFloor string // '1' if tokens follow the clock
	LeaseMS    string // the default lease, as sent
	StaleMS    string // the stale-waiter timeout, as sent

	Numbers atomic.Uint64 // the last number given out

	kindStatesMu sync.Mutex
	kindStates   map[keyspace.Kind]*kindState

	mu      sync.RWMutex
	Closing chan struct{} // closed when Close begins: no new work
	Working sync.WaitGroup
	ended   chan struct{} // closed when Close is done
	result  error         // of Close

	Handle *Handle
}

// Handle is what the program has of the parts: a Client.
type Handle struct{ parts *Parts }

// Parts returns the parts of which h is a handle.
func (h *Handle) Parts() *Parts { return h.parts }

// New makes the parts of a client, with checked settings. topology knows the connections of a
// rueidis client that this library opened. If it is nil, the rueidis client is borrowed.
func New(client rueidis.Client, config Config, r *report.Reporter, topology *nodes.Topology) (*Parts, error) {
	c := &Parts{
		ID:         identity.NewClientID(),
		Config:     config,
		Reporter:   r,
		Rueidis:    client,
		owned:      topology != nil,
		Cluster:    client.Mode() == rueidis.ClientModeCluster,
		Clock:      lease.SystemClock,
		Publish:    "PUBLISH",
		kindStates: map[keyspace.Kind]*kindState{},
		LeaseMS:    script.MillisText(config.Lease),
		StaleMS:    script.MillisText(config.StaleWaiterTimeout),
		Closing:    make(chan struct{}),
		ended:      make(chan struct{}),
	}
	c.Handle = &Handle{c}
	if config.TimeFencing {
		c.TokenFloor = "1"
	}
	if config.Clock != nil {
		c.Clock = config.Clock
	}
	c.initSender(topology)
	sharded, err := c.queryAtStart()
	if err != nil {
		return nil, err
	}
	if sharded {
		c.Publish = "SPUBLISH"
	}
	c.Notifier = pubsub.New(c.Sender, reportsOfMessages(c.Reporter), c.ID, 2*config.PollCeiling, sharded)
	c.Notifier.Counts = !c.Cluster
	c.Watchdog = c.newWatchdog()
	c.Undo = undo.New(c.Sender, c.Clock)
	givenUp := func(record string) { c.Reporter.Log(report.NoticeGivenUp, record) }
	c.Sessions = undo.NewSessions(c.Undo, c.ID, c.Number, givenUp)
	c.Lines = line.NewTable()
	c.Waiting = line.Waiting{Table: c.Lines, Counts: new(line.Counts), Closing: c.Closing, Trouble: c.logTrouble}
	c.Inbox = c.NewInbox(c.Notifier.Add)
	c.Notifier.Unclaimed = c.Inbox.Unclaimed
	c.Record = labels.NewRecord(c.labelConfig())
	c.Labels = labels.NewKnown(c.Record)
	c.Inspector = &inspect.Inspector{Query: c.query, Labels: c.Labels, Numsub: "NUMSUB"}
	if sharded {
		c.Inspector.Numsub = "SHARDNUMSUB"
	}
	return c, nil
}

// Number returns a number that this client has not used yet.
func (c *Parts) Number() uint64 { return c.Numbers.Add(1) }

// NewInbox makes the inbox of the client. subscribe begins to listen to a channel.
func (c *Parts) NewInbox(subscribe func(*pubsub.Subscription)) *inbox.Inbox {
	return inbox.New(inbox.Config{
		Client:      c.ID,
		Sharded:     c.Publish == "SPUBLISH",
		Counts:      !c.Cluster,
		PollCeiling: c.Config.PollCeiling,
		Subscribe:   subscribe,
	})
}

// labelConfig returns what the labels of clients need of this one.
func (c *Parts) labelConfig() labels.Config {
	return labels.Config{ClientID: c.ID, Label: c.Config.Label, Sender: c.Sender, Cluster: c.Cluster, Clock: c.Clock,
		Begin: c.Begin, Done: c.Done,
		Refused: func(err error) { c.Reporter.Log(report.NoticeLabel, c.Config.Label, slog.Any("error", err)) }}
}

// initSender makes what sends the commands of the client. topology is as for New.
func (c *Parts) initSender(topology *nodes.Topology) {
	c.Topology = cmp.Or(topology, nodes.NewTopology(c.Cluster, c.Config.MaxInFlight))
	sends := c.Rueidis
	if !c.owned {
		sends = connect.NotStraying(sends)
	}
	c.Sender = &transport.Sender{
		Client:          sends,
		CancelsPromptly: c.owned,
		Topology:        c.Topology,
		Patience:        c.Config.RetryBudget,
		Clock:           c.Config.Clock,
	}
	c.Replication = c.Config.Confirmation(c.ID, maxWaits)
}

// newWatchdog makes the watchdog. Its renewals must not queue behind acquisitions for replicas that
// confirm them, so they do that apart.
func (c *Parts) newWatchdog() *renewal.Watchdog {
	waits := 2 * renewal.Flights(c.Topology.Cluster) // renewals that timed out may still wait
	return renewal.New(renewal.Config{
		Clock:       c.Clock,
		Topology:    c.Topology,
		PollCeiling: c.Config.PollCeiling,
		Send:        renewal.SendOver(c.Sender, c.Config.Confirmation(c.ID, waits)),
		Failed: func(lock string, holds int, err error) {
			c.Reporter.Log(report.NoticeRenewal, lock, slog.Int("holds", holds), slog.Any("error", err))
		},
	})
}

// queryAtStart finds out what must be known before the first lock: whether messages are
// sharded, and, if replicas have to confirm, whether the server knows WAIT.
func (c *Parts) queryAtStart() (sharded bool, err error) {
	if sharded, err = pubsub.MeetCluster(c.Sender, c.Config.ClassicPubSub, c.Config.RetryBudget); err != nil {
		return false, fault.Op("connect", "cluster", outcome.Unanswered(err))
	}
	if c.Config.LazyConnect {
		return sharded, nil
	}
	if err := c.Replication.Check(c.Sender); err != nil {
		return false, fault.Op("connect", "replicas", outcome.Unanswered(err))
	}
	return sharded, nil
}

// LeaseText returns a lease as it is sent. For the default lease it allocates nothing.
func (c *Parts) LeaseText(lease time.Duration) string {
	if lease == c.Config.Lease {
		return c.LeaseMS
	}
	return script.MillisText(lease)
}

// logTrouble logs that a call waits for the server to recover.
func (c *Parts) logTrouble(name string, err error) {
	trouble := report.NoticeTrouble
	if outcome.Classify(err) == outcome.TryLater {
		trouble = report.NoticeBusyServer
	}
	c.Reporter.Log(trouble, name, slog.Any("error", err))
}

// reportsOfMessages returns what logs that messages are missing.
func reportsOfMessages(r *report.Reporter) pubsub.Reports {
	logs := func(n report.Notice) func(string, error) {
		return func(subject string, err error) { r.Log(n, subject, slog.Any("error", err)) }
	}
	return pubsub.Reports{
		Lost:           logs(report.NoticeSubscription),
		BeatRefused:    logs(report.NoticeBeat),
		ChannelRefused: logs(report.NoticeSubscribe),
	}
}

// QueueArgs appends the arguments of a release that concern the queue: the entries of the owner and
// of the next one, and the lease of the next one.
func (c *Parts) QueueArgs(to []string, key, own, next string, full time.Duration) []string {
	return append(c.Inbox.ChannelArgs(append(to, own, next), key), c.LeaseText(full))
}
