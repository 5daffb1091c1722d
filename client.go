package latchkey

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// Client hands out locks and does their work in the background: one connection for
// messages, one goroutine that renews, whatever their number. A program needs one
// client for each Redis. All methods may be called from any goroutine.
type Client struct {
	id      string
	options Options
	rueidis rueidis.Client
	owned   bool
	cluster bool
	clock   func() transport.Stamp

	sender     *transport.Sender
	waitQueues *waitQueues
	notifier   *notifier
	watchdog   *watchdog
	undo       *undoer
	acks       *transport.Replication // nil if nothing has to be confirmed
	renewals   *transport.Replication // the same for renewals, which must not queue behind acquisitions
	registry   *registry
	topology   *transport.Topology
	identity   identity
	dedupLanes dedupLanes
	reporter   *reporter

	publish    string // the command that publishes
	tokenFloor string // '1' if tokens follow the clock
	leaseMS    string // the default lease, as it is sent
	staleMS    string // the stale-waiter timeout, as it is sent

	partsMu sync.Mutex
	parts   map[Kind]part

	mu      sync.RWMutex
	closing chan struct{} // closed when Close begins: no new work
	working sync.WaitGroup
	closed  chan struct{} // closed when Close is done
	result  error
}

// New makes a client that uses an existing rueidis client, which it does not close.
// Whatever options that was made with, the promises of this package hold. A bad option is
// an ErrInvalid.
//
// Prefer [Open] with the settings of that client, unless you have to share its
// connections: of a borrowed client nobody knows whether it returns when a context ends, so
// every command is sent from a goroutine of its own, on copies of its keys and arguments,
// with a timer, and a context that does not end. That is 15 allocations more for each
// uncontended Lock and Unlock. Its connections are not seen either: an attempt that was not
// answered is undone up to five times instead of once. docs/operations.md has the settings
// of the rueidis client that fit best.
//
// Nothing is sent, except that a cluster is asked which node serves what, and whether it
// knows sharded messages, for at most two seconds or Options.RetryBudget, whichever is
// longer, and that WAIT is tried if Options.Replicas asks for it, for at most
// Options.RetryBudget.
func New(client rueidis.Client, options Options) (*Client, error) {
	switch {
	case client == nil:
		return nil, invalid("the rueidis client is nil")
	case options.AddressMapper != nil:
		return nil, invalid("Options.AddressMapper is for Connect and Open; this client has been opened already")
	case options.LazyConnect:
		return nil, invalid("Options.LazyConnect is for Connect and Open; this client has been opened already")
	}
	return newClient(client, options, nil)
}

// newClient makes a client. topology knows the connections of a rueidis client that this
// package has opened; without it the rueidis client is borrowed.
func newClient(client rueidis.Client, options Options, topology *transport.Topology) (*Client, error) {
	options = options.withDefaults()
	if err := options.check(); err != nil {
		return nil, err
	}
	c := &Client{
		id:         uuid.NewString(),
		options:    options,
		rueidis:    client,
		owned:      topology != nil,
		cluster:    client.Mode() == rueidis.ClientModeCluster,
		clock:      options.clock,
		waitQueues: newWaitQueues(),
		publish:    "PUBLISH",
		parts:      map[Kind]part{},
		leaseMS:    strconv.FormatInt(millis(options.Lease), 10),
		staleMS:    strconv.FormatInt(millis(options.StaleWaiterTimeout), 10),
		closing:    make(chan struct{}),
		closed:     make(chan struct{}),
	}
	if options.TimeFencing {
		c.tokenFloor = "1"
	}
	c.sender = &transport.Sender{
		Client:          client,
		CancelsPromptly: topology != nil,
		Topology:        cmp.Or(topology, transport.NewTopology(c.cluster, options.MaxInFlight)),
		Patience:        options.RetryBudget,
		Clock:           c.clock,
	}
	c.topology = c.sender.Topology
	sharded, err := meetCluster(c.sender, options)
	if err != nil {
		return nil, fail("connect", "cluster", unanswered(err))
	}
	if sharded {
		c.publish = "SPUBLISH"
	}
	c.acks = options.Replicas.confirmation(c.id, maxWaits)
	c.renewals = options.Replicas.confirmation(c.id, 2*c.renewFlights()) // some may have been left behind
	if !options.LazyConnect {
		if err := waitRefused(c.acks.Check(c.sender)); err != nil {
			return nil, fail("connect", "replicas", unanswered(err))
		}
	}
	c.reporter = newReporter(options)
	c.notifier = newNotifier(c.sender, c.reporter, c.id, 2*options.PollCeiling, sharded)
	c.watchdog = newWatchdog(c)
	c.undo = newUndoer(c)
	c.registry = newRegistry(c)
	return c, nil
}

// ID returns the random id of this client, the first part of its owners.
func (c *Client) ID() string { return c.id }

// NewOwner returns an owner that nobody has, for [By] and [WithOwner].
func (c *Client) NewOwner() Owner {
	return Owner{client: c.id, number: c.registry.number()}
}

// part is what a kind of lock keeps for all its locks of a client, such as the list of their
// waiters.
type part interface{ close() }

// part returns that of a kind of lock, made when it is first needed.
func (c *Client) part(kind Kind, newPart func(*Client) part) part {
	c.partsMu.Lock()
	defer c.partsMu.Unlock()
	p := c.parts[kind]
	if p == nil {
		p = newPart(c)
		c.parts[kind] = p
	}
	return p
}

// closeParts closes them, when no lock uses them any more.
func (c *Client) closeParts() {
	c.partsMu.Lock()
	parts := slices.Collect(maps.Values(c.parts))
	c.partsMu.Unlock()
	for _, p := range parts {
		p.close()
	}
}

// begin counts a piece of work that Close waits for, unless Close has begun.
func (c *Client) begin() bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	select {
	case <-c.closing:
		return false
	default:
		c.working.Add(1)
		return true
	}
}

// Close ends everything: new calls and waiters get ErrClosed, live holds end with
// that cause and are released, background work stops, and a connection that the
// client opened is closed. What the logger and the observer have not been told is
// delivered, for Options.RetryBudget at most. When it returns nil, no goroutine is left.
//
// If ctx ends first, Close returns its error and the rest ends by itself; locks
// that could not be released come back at the end of their leases. A ctx that has
// ended already, as at the end of a program it often has, is replaced by
// Options.RetryBudget. Further calls wait for the first, and return what it
// returned.
func (c *Client) Close(ctx context.Context) error {
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), c.options.RetryBudget)
		defer cancel()
	}
	if c.startClosing() {
		go c.finish(ctx, c.endHolds())
	}
	select {
	case <-c.closed:
		return c.result
	case <-ctx.Done():
		return fail("close", "client", transport.ContextError(ctx))
	}
}

// startClosing reports whether this call is the first.
func (c *Client) startClosing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.closing:
		return false
	default:
		close(c.closing)
		return true
	}
}

// endHolds tells every hold at once that the client is closed, and returns those
// whose locks are to be released.
func (c *Client) endHolds() []*ownership {
	all := c.registry.all()
	return slices.DeleteFunc(all, func(t *ownership) bool {
		if t.isReleasing() {
			return false // its Unlock is under way, and says what came of it
		}
		if !t.end(ErrClosed) {
			return true
		}
		t.endHold(0)
		return false
	})
}

// finish is the work of Close, in its order: waiters leave, locks are released,
// what is unknown is settled, the helpers stop, and the last of it is told.
func (c *Client) finish(ctx context.Context, ended []*ownership) {
	defer close(c.closed)
	c.working.Wait()
	c.releaseAll(ctx, append(ended, c.endHolds()...))
	c.closeParts()
	c.watchdog.close()
	c.undo.close(ctx)
	c.notifier.close()
	c.sender.Finish()
	if c.owned {
		c.rueidis.Close()
	}
	if err := c.reporter.close(ctx, c.options.RetryBudget); err != nil && c.result == nil {
		c.result = fail("close", "client", err)
	}
}

// closeReleases is how many locks Close releases at a time.
const closeReleases = 64

// releaseAll frees the locks of ownerships that are over. If that fails, it fails for
// many in the same way: the first error stands for all.
func (c *Client) releaseAll(ctx context.Context, ended []*ownership) {
	var failed atomic.Int32
	inParallel(closeReleases, ended, func(t *ownership) {
		if failed.Load() > 0 {
			failed.Add(1) // a silent server would cost the rest as much again
			return
		}
		if err := t.releaseAtClose(ctx); err != nil && transport.Classify(err) != transport.Refused && failed.Add(1) == 1 {
			c.result = err
		}
	})
	if n := failed.Load(); n > 1 {
		c.result = fmt.Errorf("%w (and %d more)", c.result, n-1)
	}
}

func (t *ownership) releaseAtClose(ctx context.Context) error {
	if err := t.turn.Lock(ctx); err != nil {
		return fail("close", t.lock.name, ErrUnknownOutcome, transport.Unavailable(transport.ContextError(ctx)))
	}
	defer t.turn.Unlock()
	unlocking := t.isReleasing()
	if !unlocking && t.wasReleased() {
		return nil
	}
	a, err := t.sendCount(ctx, nil)
	switch {
	case err != nil:
		return fail("close", t.lock.name, err)
	case unlocking:
		t.countSent(a)
	default:
		t.observe(Event{Type: EventReleased})
	}
	return nil
}

// isReleasing reports whether the last release has begun and nothing has come of it yet.
func (t *ownership) isReleasing() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.phase == releasing
}

// wasReleased reports whether the ownership ended by a release.
func (t *ownership) wasReleased() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.phase == over && t.cause == nil
}

// leaseText returns a lease as it is sent; the default one costs nothing.
func (c *Client) leaseText(lease time.Duration) string {
	if lease == c.options.Lease {
		return c.leaseMS
	}
	return strconv.FormatInt(millis(lease), 10)
}

// pollPause is how long a waiter relies on messages this time: up to the ceiling,
// a quarter less at random, so that clients do not ask together.
func (c *Client) pollPause() time.Duration {
	ceiling := c.options.PollCeiling
	return ceiling - rand.N(ceiling/4+1)
}

// patienceInFront is how long a waiter stands in front before permits are reserved for it;
// also how often it then gives a sign of life.
func (c *Client) patienceInFront() time.Duration { return c.options.StaleWaiterTimeout / 5 }
