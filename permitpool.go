package latchkey

import (
	"context"
	"strconv"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/object"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/engine/undo"
)

// permitPool is a semaphore whose permits have ids and leases. The kinds differ in how callers wait.
type permitPool struct {
	permitCount

	permits *acquire.Lock
}

// newPermitPool returns a semaphore whose clients wait in the queue on the server.
func newPermitPool(c *ownership.Engine, name string) permitPool {
	return permitPoolOf(c, name, permitQueuesOf(c).inLine)
}

// newFairPermitPool returns a semaphore whose waiters are all in the queue on the server.
func newFairPermitPool(c *ownership.Engine, name string) permitPool {
	s := permitPoolOf(c, name, permitQueuesOf(c).fair)
	s.RefuseWholeTag("a fair semaphore")
	return s
}

func permitPoolOf(c *ownership.Engine, name string, permits *acquire.Spec) permitPool {
	o := object.New(c, keyspace.KindSemaphore, name, semaphoreChannel)
	count := permitCount{Object: o, secondKey: keyspace.PermitIDsKey(o.Names.Key), numeral: "permit semaphore", script: permitsChange}
	return permitPool{count, acquire.LockOf(c, permits, o.Names)}
}

// maxPermits is how many permits one call may acquire.
const maxPermits = 1000

// acquire acquires n permits, all or none.
func (s *permitPool) acquire(ctx context.Context, verb string, waits bool, n int, settings []request.Setting) ([]*hold.Handle, error) {
	if n < 1 || n > maxPermits {
		return nil, fault.Op(verb, s.Names.Name, fault.Invalid("%d permits at once, want at least 1 and at most %d", n, maxPermits))
	}
	a := s.permits.NewAcquisition(verb, waits, append(settings, request.Setting{Kind: request.Together, N: n}))
	h, err := a.Run(ctx)
	if err != nil {
		return nil, err
	}
	permits := []*hold.Handle{h}
	for _, o := range a.Others {
		permits = append(permits, hold.New(o.First()))
	}
	return permits, nil
}

// innermostPermit returns the innermost hold on ctx that is a permit, or nil.
func innermostPermit(ctx context.Context) *hold.Handle {
	for h := range hold.On(ctx) {
		if s, is := h.Backend().(*ownership.Hold); is && s.IsPermit() {
			return h
		}
	}
	return nil
}

// permitsChange returns the call that changes the number of permits of a semaphore whose permits have ids.
func permitsChange(c *permitCount, o *undo.Operation, how permitChange, n int, ttl string) script.Call {
	args := c.Client.Inbox.ChannelArgs([]string{o.Number, strconv.Itoa(n), string(how), ttl, c.Client.Publish, c.Names.Channel}, c.Names.Key)
	return script.NewCall(script.PermitSet, c.queueKeys(o), append(args, line.PresenceChannel(c.Names.Key))...)
}

// queueKeys returns the keys of scripts that serve the queue.
func (c *permitCount) queueKeys(o *undo.Operation) []string {
	queue := c.Names.FairPermitKeys()[2:5]
	return append([]string{c.Names.Key, c.secondKey, o.Record, c.kindKey()}, queue...)
}
