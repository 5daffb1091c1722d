package latchkey

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// Leadership is the right to lead, and the way to learn that it is lost. Campaign returns one for
// each term. Any goroutine may call its methods. A nil Leadership behaves like a resigned one.
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
	l := &Leadership{election: e, hold: h, owner: h.Backend().(*holdState).ownership.wire}
	l.announced.Store(&announcedValue{l.revisions.Add(1), value})
	return l
}

// held is the hold, nil for a nil Leadership.
func (l *Leadership) held() *hold.Handle {
	if l == nil {
		return nil
	}
	return l.hold
}

// Context returns a context for the work of the leader. It ends with parent, when the leadership is
// lost ([context.Cause] then matches ErrLost, and also ErrMaxHold if that was the reason), when the
// client is closed (ErrClosed), and when Resign begins (ErrNotHeld). If the leadership is already
// over, the context has ended when Context returns. Context sends nothing to the server.
//
// [Election.HoldFrom] finds the hold of the lock in the context; its [Hold.Token] is the term. Otherwise
// Context behaves like [Hold.Context].
func (l *Leadership) Context(parent context.Context) context.Context { return l.held().Context(parent) }

// Lost returns a channel that closes when the leadership is lost, at the latest when the lease
// could run out on the server, even if the server is silent. It does not close on Resign.
func (l *Leadership) Lost() <-chan struct{} { return l.held().Lost() }

// Err returns nil while the leadership lasts, and afterwards why it is over: ErrNotHeld after
// Resign, or the cause of the loss (ErrLost, ErrMaxHold, ErrClosed). It is right at the time of the
// call, even if the machine has just woken up and no timer has fired yet.
func (l *Leadership) Err() error { return l.held().Err() }

// ValidFor returns how long you can rely on the leadership if the server never answers again, 0
// when it is over. It sends nothing to the server: see [Hold.ValidFor].
func (l *Leadership) ValidFor() time.Duration { return l.held().ValidFor() }

// Term returns the fencing token of the leadership: a number that is larger than that of every
// earlier leader, and stays the same until the leadership is over. Send it with everything that the
// leader writes, and let the storage refuse a smaller one.
func (l *Leadership) Term() int64 { return l.held().Token() }

// Value returns the last value announced by Campaign or by a Proclaim that returned nil.
func (l *Leadership) Value() string {
	if l == nil {
		return ""
	}
	return l.announced.Load().value
}

// Proclaim announces another value under the same term. If several calls are in flight, the one
// that began last decides.
//
// A nil error means that the leadership still existed on the server, and that the server stored the
// value or a later one of this leadership. ErrNotHeld means that the leadership is over and nothing
// was changed. If it was lost, the error also matches ErrLost; the leadership then ends with this
// call, unless it ended before. Otherwise the error matches one of
//
//   - ErrUnavailable: the server could not be reached. If the value was sent and not answered, the
//     error also matches ErrUnknownOutcome: the value may be announced while the leadership lasts,
//     so call Proclaim again
//   - ErrClosed: the client is closed
//   - ErrInvalid: the value is longer than MaxValueLength
//   - ErrWrongKind: a key is another kind of object
//   - *rueidis.RedisError: the server refuses
func (l *Leadership) Proclaim(ctx context.Context, value string) error {
	const verb = "proclaim"
	if err := l.Err(); err != nil {
		return fault.Op(verb, l.name(), fault.NotHeld(err))
	}
	if err := checkValue(value); err != nil {
		return fault.Op(verb, l.name(), err)
	}
	next := &announcedValue{l.revisions.Add(1), value}
	a, err := l.announce(ctx, next)
	if err != nil {
		return fault.Op(verb, l.name(), l.election.explain(ctx, a, err)...)
	}
	for now := l.announced.Load(); now.revision < next.revision; now = l.announced.Load() {
		if l.announced.CompareAndSwap(now, next) {
			break
		}
	}
	return nil
}

func (l *Leadership) name() string { return l.held().Name() }

// begin announces the first value. If waits is true, it keeps trying until the leadership is lost,
// whatever trouble the server is in.
func (l *Leadership) begin(ctx context.Context, waits bool) error {
	under := l.Context(ctx)
	for {
		_, err := l.announce(under, l.announced.Load())
		switch lost := l.Err(); {
		case err == nil:
			return nil
		case errors.Is(err, fault.ErrClosed) || errors.Is(lost, fault.ErrClosed):
			return fault.ErrClosed
		case lost != nil:
			return errors.Join(fault.ErrNotAcquired, fault.ErrLost)
		case !waits || !errors.Is(err, fault.ErrUnavailable) || !line.WorthWaiting(ctx, err):
			return errors.Join(script.Explain(l.election.client.inspector.wrongKind(ctx, l.election.names, keyspace.KindLock, err))...)
		}
	}
}

// announce sends a value. The error is ErrNotHeld and ErrLost if the server no longer knows the
// leadership.
func (l *Leadership) announce(ctx context.Context, v *announcedValue) (transport.Answer, error) {
	e := l.election
	a, err := e.send(ctx, script.NewCall(script.ElectionAnnounce, e.seen,
		l.owner, strconv.FormatInt(l.Term(), 10), strconv.FormatInt(v.revision, 10), v.value, e.client.Publish, e.names.Channel, e.client.Config.Label,
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
	if o := l.hold.Backend().(*holdState).ownership; o.live() {
		o.lose(fault.ErrLost, "the key was gone when the leader announced its value")
	}
	return fault.NotHeld(l.Err())
}

// Resign ends the leadership, and gives it to the next candidate. It works even if ctx has ended:
// it uses only the values of ctx, and twice Options.RetryBudget bounds its time instead.
//
// A nil error means that the leadership lasted until this call and is over now. ErrNotHeld means
// that it was over before: resigned already, or lost (then ErrLost matches too). After any other
// error the client no longer renews the leadership, and repeats the release in the background until
// the lease has ended. You may call Resign again to wait for it: see [Hold.Unlock].
func (l *Leadership) Resign(ctx context.Context) error {
	if err := l.held().Unlock(ctx); err != nil {
		return fault.WithVerb("resign", err)
	}
	l.retire(ctx)
	return nil
}

// resignPatience is how long a campaign that has failed waits for its release.
const resignPatience = time.Second

// resignInTime resigns for a campaign that has failed. If ctx ends first, or the server is silent, the background
// goes on.
func (l *Leadership) resignInTime(ctx context.Context) error {
	resigned := make(chan error, 1)
	l.election.client.Sender.Background(func() { resigned <- l.Resign(ctx) })
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
	_, _ = e.send(e.client.Sender.Detached(ctx), script.NewCall(script.ElectionRetire, e.seen[1:2], l.owner, e.client.Publish, e.names.Channel))
}

// leaderOf reads the reply of lua/election/look.lua.
func leaderOf(a transport.Answer) (Leader, error) {
	words, err := a.Message.AsStrSlice()
	if err != nil || len(words) != 7 {
		return Leader{}, errors.Join(script.ErrReply, err)
	}
	numbers := make([]int64, 4) // term, since, age, lease
	for i := range numbers {
		n, failed := strconv.ParseInt(words[i+1], 10, 64)
		numbers[i], err = n, errors.Join(err, failed)
	}
	if err != nil {
		return Leader{}, errors.Join(script.ErrReply, err)
	}
	return Leader{
		Value: words[5], Label: identity.CleanText(words[6], identity.MaxLabel), Term: numbers[0], Owner: Owner(identity.Of(words[0])),
		Since: time.UnixMilli(numbers[1]), Age: script.FromMillis(numbers[2]), Lease: script.FromPTTL(numbers[3]),
	}, nil
}
