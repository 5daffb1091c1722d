package semaphore

import (
	"context"
	"strconv"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/object"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/engine/undo"
)

// Pool is a semaphore whose permits have ids and leases. The kinds differ in how callers wait.
type Pool struct {
	Count

	Permits *acquire.Lock
}

// NewPool returns a semaphore whose clients wait in the queue on the server.
func NewPool(c *core.Parts, name string) Pool {
	return permitPoolOf(c, name, QueuesOf(c).inLine)
}

// NewFairPool returns a semaphore whose waiters are all in the queue on the server.
func NewFairPool(c *core.Parts, name string) Pool {
	s := permitPoolOf(c, name, QueuesOf(c).fair)
	s.RefuseWholeTag("a fair semaphore")
	return s
}

func permitPoolOf(c *core.Parts, name string, permits *acquire.Spec) Pool {
	o := object.New(c, keyspace.KindSemaphore, name, Channel)
	count := Count{
		Object: o, SecondKey: keyspace.PermitIDsKey(o.Names.Key), numeral: "permit semaphore", script: permitsChange,
	}
	return Pool{count, acquire.LockOf(c, permits, o.Names)}
}

// MaxAtOnce is how many permits one call may acquire.
const MaxAtOnce = 1000

// Acquire acquires n permits, all or none.
func (s *Pool) Acquire(
	ctx context.Context, verb string, waits bool, n int, settings []request.Setting,
) ([]*hold.Handle, error) {
	if n < 1 || n > MaxAtOnce {
		return nil, fault.Op(verb, s.Names.Name,
			fault.Invalid("%d permits at once, want at least 1 and at most %d", n, MaxAtOnce))
	}
	a := s.Permits.NewAcquisition(verb, waits, append(settings, request.Setting{Kind: request.Together, N: n}))
	h, err := a.Run(ctx)
	if err != nil {
		return nil, err
	}
	permits := []*hold.Handle{h}
	for _, o := range a.Others {
		permits = append(permits, hold.New(&o.First))
	}
	return permits, nil
}

// Do acquires a permit, calls fn with a context of it, and releases it.
func (s *Pool) Do(ctx context.Context, fn func(context.Context) error, settings []request.Setting) error {
	if fn == nil {
		return fault.Op("do", s.Names.Name, fault.ErrNoFunction)
	}
	acquired, err := s.Acquire(ctx, "acquire", true, 1, settings)
	if err != nil {
		return err
	}
	return acquired[0].During(ctx, fn)
}

// Innermost returns the innermost hold on ctx that is a permit, or nil.
func Innermost(ctx context.Context) *hold.Handle {
	for h := range hold.On(ctx) {
		if s, is := h.Backend().(*ownership.Hold); is && s.IsPermit() {
			return h
		}
	}
	return nil
}

// permitsChange returns the call that changes the number of permits of a semaphore whose permits
// have ids.
func permitsChange(c *Count, o *undo.Operation, how permitChange, n int, ttl string) script.Call {
	args := []string{o.Number, strconv.Itoa(n), string(how), ttl, c.Client.Publish, c.Names.Channel}
	args = c.Client.Inbox.ChannelArgs(args, c.Names.Key)
	return script.NewCall(script.PermitSet, c.queueKeys(o), append(args, line.PresenceChannel(c.Names.Key))...)
}

// queueKeys returns the keys of scripts that serve the queue.
func (c *Count) queueKeys(o *undo.Operation) []string {
	queue := c.Names.FairPermitKeys()[2:5]
	return append([]string{c.Names.Key, c.SecondKey, o.Record, c.KindKey()}, queue...)
}
