package latchkey

import (
	"context"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// A lock with [AtLeast] stays taken for a minimum time. Its first lease is at least as long, in case the
// holder crashes. A release before that time is early: the scripts that end in _release_early replace the
// owner by one with keptSuffix, which expires when the time is over. Nothing can acquire as that owner, so
// nothing can enter the lock by the former owner.

// keptFor is the remaining time for which a lock stays taken. It counts from the answer to the acquisition, by
// the monotonic clock alone: setting the wall clock forward does not shorten it.
func (l *timeBound) keptFor(now transport.Stamp) time.Duration {
	if l == nil {
		return 0
	}
	return max(l.d-(now.Mono-l.from.Mono), 0)
}

// earlyReleaser is a protocol whose locks can be released early.
type earlyReleaser interface {
	// earlyCall ends an ownership whose lock stays taken for a while. earlyFor adds for how long.
	earlyCall(o *ownership) call
}

// earlyFor returns the call of an early release that keeps the lock taken for rest, which is the second
// argument.
func (c call) earlyFor(rest time.Duration) call {
	c.args = slices.Clone(c.args)
	c.args[1] = millisText(rest)
	return c
}

// checkAtLeast refuses the option for a lock that cannot stay taken, and for the lock of an election, which
// must go to the next candidate at once.
func (p *primitive) checkAtLeast() error {
	if _, is := p.spec.protocol.(earlyReleaser); !is || p.spec.public {
		return errNoAtLeast
	}
	return nil
}

var errNoAtLeast = invalid("AtLeast does not apply to read locks, MultiLocks, RedLocks and elections")

// keptAfter is how long the lock stays taken after a release that leaves count holds. Before the ownership
// has begun, it is called only with o.mu held.
func (o *ownership) keptAfter(count int) time.Duration {
	keptUntil := o.rarely().keptUntil
	if count > 0 || keptUntil == nil {
		return 0
	}
	return keptUntil.keptFor(o.lock.client.clock())
}

// sendEarly sends the release of an ownership whose lock stays taken.
func (o *ownership) sendEarly(ctx context.Context, stop <-chan struct{}, on transport.Terms, rest time.Duration) (transport.Answer, error) {
	c := o.protocol().(earlyReleaser).earlyCall(o).earlyFor(rest)
	a, err := o.lock.client.sender.CallOn(ctx, stop, on, c.cmd, c.keys, c.args)
	o.lock.noteKeysOmitted(a, err)
	o.lock.client.record.keepUntil(a.Sent.Mono + rest)
	return a, err
}

// earlyRelease undoes an ownership that was lost while its lock must stay taken.
type earlyRelease struct {
	call      call
	keptUntil *timeBound
}

// earlyRelease returns nil if the lock need not stay taken: the ownership never began, or the server has
// confirmed its release. An acquisition that is executed late is then undone completely.
func (o *ownership) earlyRelease() *earlyRelease {
	o.mu.Lock()
	rare := o.rarely()
	keptUntil, lost := rare.keptUntil, rare.cause != nil
	o.mu.Unlock()
	if keptUntil == nil || !lost {
		return nil
	}
	return &earlyRelease{o.protocol().(earlyReleaser).earlyCall(o), keptUntil}
}

// or returns the call of the early release, or the other call if the time is over.
func (e *earlyRelease) or(release call, now transport.Stamp) call {
	if e == nil || e.keptUntil.keptFor(now) == 0 {
		return release
	}
	return e.call.earlyFor(e.keptUntil.keptFor(now))
}

func (stringProtocol) earlyCall(o *ownership) call {
	names := o.lock.keys()
	args := o.earlyArgs([]string{o.wire, "", names.channel, o.lock.client.publish})
	return call{mutexReleaseEarly, names.released(names.queued()), args}
}

func (hashProtocol) earlyCall(o *ownership) call {
	names := o.lock.keys()
	args := o.earlyArgs([]string{o.wire, "", o.guestID(), names.channel, o.lock.client.publish})
	return call{lockReleaseEarly, names.released(names.queued()), args}
}

// earlyArgs appends the arguments of an early release that concern the queue.
func (o *ownership) earlyArgs(to []string) []string {
	o.mu.Lock()
	own := ""
	if o.doubt.mayWait() {
		own = o.entry.text
	}
	o.mu.Unlock()
	return o.lock.client.handover.channelArgs(append(to, own), o.lock.key)
}
