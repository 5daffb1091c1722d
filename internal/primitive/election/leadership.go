package election

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// Leadership is the inside of a Leadership: a hold of the lock, and what the leader has announced.
type Leadership struct {
	election *Election
	hold     *hold.Handle
	owner    string // as it is in Redis

	revisions atomic.Int64                   // how many values have been announced, or tried
	announced atomic.Pointer[announcedValue] // the last value that the server has confirmed
}

// announcedValue is one value of a term, and its number in that term.
type announcedValue struct {
	revision int64
	value    string
}

func newLeadership(e *Election, h *hold.Handle, value string) *Leadership {
	l := &Leadership{election: e, hold: h, owner: h.Backend().(*ownership.Hold).Ownership.Wire}
	l.announced.Store(&announcedValue{l.revisions.Add(1), value})
	return l
}

// Held is the hold, nil for a nil Leadership.
func (l *Leadership) Held() *hold.Handle {
	if l == nil {
		return nil
	}
	return l.hold
}

// err returns why it is over, or nil.
func (l *Leadership) err() error { return l.Held().Err() }

// term returns the fencing token.
func (l *Leadership) term() int64 { return l.Held().Token() }

// Value returns the last value that the server has confirmed.
func (l *Leadership) Value() string {
	if l == nil {
		return ""
	}
	return l.announced.Load().value
}

// Proclaim announces another value under the same term.
func (l *Leadership) Proclaim(ctx context.Context, value string) error {
	const verb = "proclaim"
	if err := l.err(); err != nil {
		return fault.Op(verb, l.name(), fault.NotHeld(err))
	}
	if err := checkValue(value); err != nil {
		return fault.Op(verb, l.name(), err)
	}
	next := &announcedValue{l.revisions.Add(1), value}
	a, err := l.announce(ctx, next)
	if err != nil {
		return fault.Op(verb, l.name(), l.election.Explain(ctx, a, err)...)
	}
	for now := l.announced.Load(); now.revision < next.revision; now = l.announced.Load() {
		if l.announced.CompareAndSwap(now, next) {
			break
		}
	}
	return nil
}

func (l *Leadership) name() string { return l.Held().Name() }

// begin announces the first value. If waits is true, it keeps trying until the leadership is lost,
// whatever trouble the server is in.
func (l *Leadership) begin(ctx context.Context, waits bool) error {
	under := l.Held().Context(ctx)
	for {
		_, err := l.announce(under, l.announced.Load())
		switch lost := l.err(); {
		case err == nil:
			return nil
		case errors.Is(err, fault.ErrClosed) || errors.Is(lost, fault.ErrClosed):
			return fault.ErrClosed
		case lost != nil:
			return errors.Join(fault.ErrNotAcquired, fault.ErrLost)
		case !waits || !errors.Is(err, fault.ErrUnavailable) || !line.WorthWaiting(ctx, err):
			e := l.election
			err = e.Client.Inspector.WrongKind(ctx, e.Names, keyspace.KindLock, err)
			return errors.Join(script.Explain(err)...)
		}
	}
}

// announce sends a value. The error is ErrNotHeld and ErrLost if the server no longer knows the
// leadership.
func (l *Leadership) announce(ctx context.Context, v *announcedValue) (transport.Answer, error) {
	e := l.election
	a, err := e.Send(ctx, script.NewCall(script.ElectionAnnounce, e.seen,
		l.owner, strconv.FormatInt(l.term(), 10), strconv.FormatInt(v.revision, 10), v.value,
		e.Client.Publish, e.Names.Channel, e.Client.Config.Label,
	))
	leads, err := script.Bool(a, err)
	if err == nil && !leads {
		return transport.Answer{}, l.gone() // whatever an earlier attempt has written, nobody sees it
	}
	return a, err
}

// gone is the error of an announcement that the server refused because the owner does not lead. If
// no release has begun by now, this client did not end the leadership: it is lost.
func (l *Leadership) gone() error {
	if o := l.hold.Backend().(*ownership.Hold).Ownership; o.Live() {
		o.Lose(fault.ErrLost, "the key was gone when the leader announced its value")
	}
	return fault.NotHeld(l.err())
}

// Resign ends the leadership, and removes what the leader has announced.
func (l *Leadership) Resign(ctx context.Context) error {
	if err := l.Held().Unlock(ctx); err != nil {
		return fault.WithVerb("resign", err)
	}
	l.retire(ctx)
	return nil
}

// resignPatience is how long a campaign that has failed waits for its release.
const resignPatience = time.Second

// resignInTime resigns for a campaign that has failed. If ctx ends first, or the server is silent,
// the background goes on.
func (l *Leadership) resignInTime(ctx context.Context) error {
	resigned := make(chan error, 1)
	l.election.Client.Sender.Background(func() { resigned <- l.Resign(ctx) })
	silence := time.NewTimer(resignPatience)
	defer silence.Stop()
	select {
	case err := <-resigned:
		return err
	case <-ctx.Done():
	case <-silence.C:
	}
	return fault.ErrUnknownOutcome
}

// retire removes what the leader has announced, and wakes observers. It need not succeed: nobody
// sees a leader that does not hold the lock.
func (l *Leadership) retire(ctx context.Context) {
	e := l.election
	call := script.NewCall(script.ElectionRetire, e.seen[1:2], l.owner, e.Client.Publish, e.Names.Channel)
	_, _ = e.Send(e.Client.Sender.Detached(ctx), call)
}
