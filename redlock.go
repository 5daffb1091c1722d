package latchkey

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// RedLock is a majority of several locks on independent servers: the algorithm of the
// Redis documentation (https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/).
// It is held as long as more than half of its members are, so that it survives the loss
// of the others. Over [Mutex] members it excludes redsync, node-redlock and whatever else
// follows that algorithm on the same keys.
//
// All members are tried at once, each for RedLockOptions.MemberTimeout at most. The hold
// begins when a majority is held and enough of its leases is left: what they have lost
// meanwhile, and a drift margin, is taken off ([Hold.ValidFor]). Else everything is
// released, and tried again after a random pause. Members that are missing are tried again
// while the hold lasts, at a third of the lease.
//
// What it does not give: it is no consensus. A server that forgets the lock (a restart
// without persistence, a failover of a member) may help another majority; clocks that run
// at different rates break the arithmetic; code that is paused is not stopped, and there
// are no fencing tokens across servers. docs/several.md has the whole of it.
//
// [By] does not apply: members of several clients have no owner in common.
type RedLock struct {
	several
	options RedLockOptions

	checking sync.Mutex
	checked  bool // the servers are different ones
}

// RedLockOptions are the settings of a [RedLock].
type RedLockOptions struct {
	// MemberTimeout is how long one member is tried. It should be small against the lease.
	// Default: a hundredth of the lease, but not less than 50 ms, nor more than 500 ms.
	MemberTimeout time.Duration
	// RetryDelay is the longest pause before another round; half of it is random.
	// Default: 200 ms.
	RetryDelay time.Duration
}

var _ Locker = (*RedLock)(nil)

// Defaults of [RedLockOptions].
const (
	minMemberTimeout  = 50 * time.Millisecond
	maxMemberTimeout  = 500 * time.Millisecond
	DefaultRetryDelay = 200 * time.Millisecond
)

// NewRedLock returns the lock that is a majority of the locks given, with default
// settings. Nothing is sent. No lock at all, and a lock that stands there twice, are an
// ErrInvalid of every method; so are two locks on one server, which the first acquisition
// finds out.
func NewRedLock(locks ...Locker) *RedLock { return NewRedLockWith(RedLockOptions{}, locks...) }

// NewRedLockWith is NewRedLock with settings.
func NewRedLockWith(options RedLockOptions, locks ...Locker) *RedLock {
	members, err := inOrder(locks)
	switch {
	case err != nil:
	case len(members) < len(locks):
		err = invalid("a lock stands there twice")
	case options.MemberTimeout < 0 || options.RetryDelay < 0:
		err = invalid("a time is negative")
	}
	setDefault(&options.RetryDelay, DefaultRetryDelay)
	return &RedLock{several: several{kind: KindRed, members: members, need: len(members)/2 + 1, invalid: err}, options: options}
}

// Lock is part of [Locker].
func (l *RedLock) Lock(ctx context.Context, options ...Option) (*Hold, error) {
	return l.acquire(ctx, "lock", true, options, l.take)
}

// TryLock is part of [Locker]: one round, or as many as fit into [Wait].
func (l *RedLock) TryLock(ctx context.Context, options ...Option) (*Hold, error) {
	return l.acquire(ctx, "try lock", false, options, l.take)
}

// Do is part of [Locker].
func (l *RedLock) Do(ctx context.Context, fn func(context.Context) error, options ...Option) error {
	return do(ctx, l, fn, options)
}

// take goes round until a majority is held.
func (l *RedLock) take(ctx context.Context, r *request, options []Option) (*Hold, error) {
	if ctx.Err() != nil {
		return nil, contextError(ctx)
	}
	if err := l.checkServers(ctx); err != nil {
		return nil, err
	}
	for {
		h, err := l.round(ctx, r, options)
		if err == nil || !r.waits || !worthWaiting(ctx, err) {
			return h, ended(ctx, err)
		}
		if stopped := rest(ctx, nil, jitter(l.options.RetryDelay)); stopped != nil {
			return nil, errors.Join(stopped, err)
		}
	}
}

// round tries all members at once.
func (l *RedLock) round(ctx context.Context, r *request, options []Option) (*Hold, error) {
	g := newGroup(l.Name(), len(l.members), l.need)
	t := l.try(ctx, l.memberTimeout(r), options)
	failures := t.gather(ctx, g)
	var h *Hold
	err := errTooFew
	if g.held() >= l.need {
		h, err = l.finish(g)
	}
	if err == nil && g.validFor() < leastValidity(r) {
		err = errLate
	}
	go t.collect(g)
	if err != nil {
		t.cancel()
		l.abandon(g, r)
		return nil, l.defeat(err, failures)
	}
	if r.renew && r.maxHold == 0 { // else a member that came later would last longer
		l.mendLater(g, r, options)
	}
	return h, nil
}

// defeat is the error of a round. If too many members fail in a way that waiting cannot
// mend, it is theirs.
func (l *RedLock) defeat(err error, failures []error) error {
	hopeless := 0
	for _, failure := range failures {
		if !ofContext(failure) && !worthWaiting(context.Background(), failure) {
			hopeless++
		}
	}
	if hopeless > len(l.members)-l.need {
		return errors.Join(failures...)
	}
	return errors.Join(append([]error{ErrNotAcquired, err}, failures...)...)
}

var errTooFew = errors.New("latchkey: no majority")

// leastValidity is what has to be left of a fixed lease for the hold to be of use.
func leastValidity(r *request) time.Duration {
	if r.renew {
		return MinLease
	}
	return r.lease / 10
}

func (l *RedLock) memberTimeout(r *request) time.Duration {
	if l.options.MemberTimeout > 0 {
		return l.options.MemberTimeout
	}
	return min(max(r.lease/100, minMemberTimeout), maxMemberTimeout)
}

// tries are attempts at several members that are under way.
type tries struct {
	outcomes chan outcome
	left     int
	members  []Locker
	cancel   context.CancelFunc
}

// outcome is what came of one.
type outcome struct {
	place int
	hold  *Hold
	err   error
}

// try begins to try some members, or all. It does not end with the caller's context: who
// is needed no more is released when it comes.
func (l *RedLock) try(ctx context.Context, timeout time.Duration, options []Option, places ...int) *tries {
	if places == nil {
		for i := range l.members {
			places = append(places, i)
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	t := &tries{make(chan outcome, len(places)), len(places), l.members, cancel}
	for _, i := range places {
		go func() {
			h, err := l.members[i].TryLock(ctx, options...)
			t.outcomes <- outcome{i, h, err}
		}()
	}
	return t
}

// gather fills the group until it is complete or cannot be any more, and returns what
// stood in its way.
func (t *tries) gather(ctx context.Context, g *group) (failures []error) {
	for spare := len(t.members) - g.need; g.held() < g.need && len(failures) <= spare; t.left-- {
		select {
		case o := <-t.outcomes:
			if o.err == nil {
				g.add(o.place, o.hold)
			} else {
				failures = append(failures, fmt.Errorf("%s: %w", t.members[o.place].Name(), o.err))
			}
		case <-ctx.Done():
			return append(failures, contextError(ctx))
		}
	}
	return failures
}

// collect waits for the rest: members that come late join the group, or are released if
// it is over.
func (t *tries) collect(g *group) {
	defer t.cancel()
	for ; t.left > 0; t.left-- {
		if o := <-t.outcomes; o.err == nil && !g.add(o.place, o.hold) {
			_ = o.hold.Unlock(context.Background())
		}
	}
}

// abandon releases what a round has got. A member that is silent is left to the
// background.
func (l *RedLock) abandon(g *group, r *request) {
	released := make(chan struct{})
	go func() {
		_ = g.unlock(context.Background())
		close(released)
	}()
	silence := time.NewTimer(l.memberTimeout(r))
	defer silence.Stop()
	select {
	case <-released:
	case <-silence.C:
	}
}

// mendLater has members that are missing tried again, for as long as the hold lasts: the
// more there are, the more may be lost.
func (l *RedLock) mendLater(g *group, r *request, options []Option) {
	period := max(g.validFor()/3, minMemberTimeout)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.state.over() || g.state.leaving {
		return
	}
	g.mending = time.AfterFunc(period, func() {
		if places := g.missing(); len(places) > 0 {
			l.try(context.Background(), l.memberTimeout(r), options, places...).collect(g)
		}
		l.mendLater(g, r, options)
	})
}

// checkServers finds out, once, whether two members are on one server: that would be one
// vote counted twice. A server that does not tell is believed.
func (l *RedLock) checkServers(ctx context.Context) error {
	l.checking.Lock()
	defer l.checking.Unlock()
	if l.checked {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, maxMemberTimeout)
	defer cancel()
	ids := make([]string, len(l.members))
	_ = atOnce(indexes(l.members), func(i int) error {
		if p, is := l.members[i].(placed); is {
			ids[i] = p.base().client.serverID(ctx)
		}
		return nil
	})
	seen := map[string]string{}
	for i, id := range ids {
		if other, twice := seen[id]; id != "" && twice {
			return invalid("%q and %q are on one server", other, l.members[i].Name())
		}
		seen[id] = l.members[i].Name()
	}
	l.checked = true
	return nil
}

// serverID is what a server calls itself while it runs, or "".
func (c *Client) serverID(ctx context.Context) string {
	if c.cluster || !c.begin() {
		return ""
	}
	defer c.working.Done()
	info, _ := c.caller.send(ctx, func(ctx context.Context) rueidis.RedisResult {
		return c.rueidis.Do(ctx, c.rueidis.B().Info().Section("server").Build())
	}).ToString()
	_, id, _ := strings.Cut(info, "run_id:")
	id, _, _ = strings.Cut(id, "\r")
	return id
}
