package transport

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/transport/nodes"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// Sender sends commands and repeats them while the server is in trouble. That is safe because each
// command may be sent twice.
type Sender struct {
	Client rueidis.Client // sends the commands
	// CancelsPromptly is true if the rueidis client returns as soon as a context ends, and sends
	// nothing once it has ended. That is known only of clients that this library opened.
	CancelsPromptly bool
	Patience        time.Duration      // for one command and its repetitions together
	Clock           func() lease.Stamp // for all measurements of time; nil means [lease.SystemClock]
	Topology        *nodes.Topology    // the nodes to which it sends
	ends            sharedDeadline
	grouping        grouping
	// querying is true during a query for the nodes of a cluster, and queriedAt is when the last
	// one began, as a time.Duration on the monotonic clock.
	querying  atomic.Bool
	queriedAt atomic.Int64
	// closed is true if the last command found the rueidis client closed.
	closed atomic.Bool

	mu      sync.Mutex
	sending sync.WaitGroup
	ending  bool // nobody waits for what is sent from now on
}

// now returns the sender's time, and the machine's time for timers.
func (s *Sender) now() (lease.Stamp, time.Time) {
	now := time.Now()
	if s.Clock == nil {
		return lease.StampOf(now), now
	}
	return s.Clock(), now
}

// node returns the node that is known to serve a key.
func (s *Sender) node(key string) *nodes.Node {
	n := s.Topology.Serving(s.Topology.SlotOf(key))
	if s.Topology.Cluster {
		_, steady := n.Steady()
		s.keepKnown(!steady)
	}
	return n
}

// heard notes whether a node is up and the rueidis client is open, from the result of a command
// that was sent in a generation of the connection.
func (s *Sender) heard(n *nodes.Node, sentIn nodes.Generation, result rueidis.RedisResult) {
	n.Heard(sentIn, result)
	err := result.NonRedisError()
	closed := errors.Is(err, rueidis.ErrClosing)
	if s.closed.Load() != closed && !errors.Is(err, outcome.ErrUnsent) {
		s.closed.Store(closed)
	}
}

// Detached returns a context for clean-up that does not end with ctx. It has the values of ctx if
// the rueidis client may use them.
func (s *Sender) Detached(ctx context.Context) context.Context {
	if s.CancelsPromptly {
		return context.Background() // an owned client does not use values
	}
	return context.WithoutCancel(ctx)
}

// send makes any other call to a node, with the same limits.
func (s *Sender) send(
	ctx context.Context, n *nodes.Node, call func(context.Context) rueidis.RedisResult,
) rueidis.RedisResult {
	end := time.Now().Add(s.Patience)
	slot, err := n.Ordinary.Reserve(ctx, end)
	if err != nil {
		return rueidis.NewErrorResult(err)
	}
	return s.sendDetached(ctx, n, n.Ordinary, slot, end, call)
}

// Background runs a function in its own goroutine. Finish waits for it, unless Finish has begun
// already.
func (s *Sender) Background(run func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending {
		go run()
		return
	}
	s.sending.Go(run)
}

// Finish waits for the goroutines of calls whose callers may have left. It does not wait for calls
// that are sent later.
func (s *Sender) Finish() {
	s.mu.Lock()
	s.ending = true
	s.mu.Unlock()
	s.sending.Wait()
}
