package latchkey

import (
	"context"
	"iter"
	"time"

	"github.com/latchkey-go/latchkey/internal/engine/hold"
	"github.com/latchkey-go/latchkey/internal/primitive/election"
)

// Election chooses one leader among any number of candidates, in any number of processes, and lets
// every process find out who leads. A [Leadership] is a hold of the fenced lock of the same name:
// it is renewed, and ends with the lease if its client crashes. Its fencing token is the term,
// which grows with every leadership as long as the server keeps its counter ([Options.TimeFencing]
// helps when it does not). Nothing is passed on in memory.
//
// A leader that is paused or cut off may not know yet that another one was elected. Everything that
// a leader writes must carry the term, so that the storage can refuse a smaller one. See
// docs/reference/election.md for what else a leader must not assume.
type Election struct{ inside election.Election }

// NewElection returns the election with that name. It sends nothing. If braces enclose the whole
// name, as in {x}, every call returns ErrInvalid, because the election would share the counter of
// terms with x.
func (c *Client) NewElection(name string) *Election { return &Election{election.New(c.engine(), name)} }

// Name returns the name as the program gave it.
func (e *Election) Name() string { return e.inside.Name() }

// Campaign waits until the caller is the leader, and announces value, of at most 65,536 bytes, to
// everybody. Clients are served in the order in which they began to wait, and so are the candidates
// of one client. A candidate that comes while nobody leads is elected at once. The client renews
// the leadership until Resign, unless [Lease] fixes its lease.
//
// A nil error means that you lead, and that [Election.Leader] says so. After any other error this
// call leads nothing. ErrNotAcquired means that another candidate led until the end of the wait.
// Besides, [AtLeast], [As] and a ctx of the caller's own leadership ([Leadership.Context]) are an
// ErrInvalid: an election is not re-entrant. Everything else is as for [Lock.Lock].
func (e *Election) Campaign(ctx context.Context, value string, options ...LockOption) (*Leadership, error) {
	l, err := e.inside.Campaign(ctx, "campaign", true, value, settingsOf(options))
	return (*Leadership)(l), err
}

// TryCampaign makes one attempt to become the leader, and does not wait for the present leader.
// ErrNotAcquired means that another candidate leads, or that the leadership was lost before its
// value was announced (ErrLost matches too). Everything else is as for Campaign and [Lock.TryLock].
func (e *Election) TryCampaign(ctx context.Context, value string, options ...TryLockOption) (*Leadership, error) {
	l, err := e.inside.Campaign(ctx, "try campaign", false, value, settingsOf(options))
	return (*Leadership)(l), err
}

// Run leads again and again. It campaigns as Campaign does, with the same options, and calls fn
// when it leads, with the context of the leadership ([Leadership.Context]). If the leadership is
// lost before Run has resigned, Run drops the result of fn and campaigns again. fn must return when
// its context ends: Run waits for it, so that this process does not lead twice.
//
// If fn returns or panics while it leads, Run resigns, even if ctx has ended, and returns the error
// of fn, which may be nil: to lead again, call Run again.
//
// The error of Run is that of fn or of Campaign. If the resignation is not confirmed, it also
// matches ErrUnknownOutcome but not ErrUnavailable; the next leader may have to wait until the
// lease ends.
func (e *Election) Run(
	ctx context.Context, value string, fn func(ctx context.Context, l *Leadership) error, options ...LockOption,
) error {
	var leads func(context.Context, *election.Leadership) error
	if fn != nil {
		leads = func(ctx context.Context, l *election.Leadership) error { return fn(ctx, (*Leadership)(l)) }
	}
	return e.inside.Run(ctx, value, leads, settingsOf(options))
}

// HoldFrom returns the hold of the leadership that ctx carries ([Leadership.Context],
// [Election.Run]), or nil: see [Lock.HoldFrom]. Its [Hold.Token] is the term.
func (e *Election) HoldFrom(ctx context.Context) *Hold { return (*Hold)(e.inside.HandleFrom(ctx)) }

// Inspect returns the lock of the leader and how many wait for it; [Election.Leader] returns what
// the leader has announced. The kind is [KindLock], or [KindNone] if nobody leads. The errors are
// those of [Lock.Inspect].
func (e *Election) Inspect(ctx context.Context) (Object, error) {
	return asObject(e.inside.Inspect(ctx))
}

// Leader asks the server who leads. It returns the zero Leader if nobody leads, and also between an
// election and its announcement: a leader never appears with the value of another. It asks the
// master, never a replica. The answer may be out of date when it arrives. The errors are those of
// [Lock.Inspect].
func (e *Election) Leader(ctx context.Context) (Leader, error) {
	l, err := e.inside.QueryLeader(ctx)
	return leaderOf(l), err
}

// Observe yields the current leader, and then every change: a leader resigns, its lease ends, a new
// leader is elected, or the leader announces a new value. While nobody leads, it yields the zero
// Leader.
//
// If several changes follow each other quickly, Observe may yield only the last one, which always
// arrives: a message wakes the observer, and it also queries the server when the leader's lease
// ends, and every Tuning.PollCeiling. Terms never go back while the server keeps its data. Observe
// queries the server again only after the loop body is done.
//
// If the server cannot be reached for Options.RetryBudget, Observe yields an error that matches
// ErrUnavailable, once. It keeps trying, and yields the leader when the server answers, even if
// that is the same as before. Any other error ends the sequence: ErrClosed, ErrWrongKind,
// ErrInvalid for a bad name, or a *rueidis.RedisError. When ctx ends, the sequence ends without an
// error. You may range over it again.
func (e *Election) Observe(ctx context.Context) iter.Seq2[Leader, error] {
	return func(yield func(Leader, error) bool) {
		e.inside.Observe(ctx, func(l election.Leader, err error) bool { return yield(leaderOf(l), err) })
	}
}

// Leader describes the leader of an election at the time of the server's answer. The zero Leader
// means that nobody leads.
type Leader struct {
	Value string    // that the leader announced with Campaign or the last Proclaim
	Term  int64     // the fencing token of the leadership, larger than that of every earlier leader
	Owner Owner     // of the lock, as [Client.Inspect] shows it
	Label string    // of the leader's client ([Options].Label), or ""
	Since time.Time // when the leader was elected, by the clock of the server
	// Age is how long the leader had led when the server answered. It depends on no other clock.
	Age time.Duration
	// Lease is what was left of the lease at that time. Nobody leads when the lease ends without a
	// renewal.
	Lease time.Duration
}

// IsZero reports whether nobody leads.
func (l Leader) IsZero() bool { return l.Term == 0 && l.Owner.IsZero() }

// leaderOf returns a leader as it was read.
func leaderOf(l election.Leader) Leader {
	return Leader{
		Value: l.Value, Term: l.Term, Owner: Owner(l.Owner), Label: l.Label,
		Since: l.Since, Age: l.Age, Lease: l.Lease,
	}
}

// Leadership is the right to lead, and the way to learn that it is lost. Campaign returns one for
// each term. Any goroutine may call its methods. A nil Leadership behaves like a resigned one.
type Leadership election.Leadership

// held returns the hold of the lock, nil for a nil Leadership.
func (l *Leadership) held() *hold.Handle { return (*election.Leadership)(l).Held() }

// Context returns a context for the work of the leader, as [Hold.Context] does: it ends with
// parent, when the leadership is lost, when the client is closed, and when Resign begins.
// [Election.HoldFrom] finds the hold of the lock in it.
func (l *Leadership) Context(parent context.Context) context.Context { return l.held().Context(parent) }

// Lost returns a channel that closes when the leadership is lost, and not on Resign: see
// [Hold.Lost].
func (l *Leadership) Lost() <-chan struct{} { return l.held().Lost() }

// Err returns nil while the leadership lasts, and afterwards why it is over: see [Hold.Err].
func (l *Leadership) Err() error { return l.held().Err() }

// ValidFor returns how long you can rely on the leadership if the server never answers again: see
// [Hold.ValidFor].
func (l *Leadership) ValidFor() time.Duration { return l.held().ValidFor() }

// Term returns the fencing token of the leadership: a number that is larger than that of every
// earlier leader, and stays the same until the leadership is over.
func (l *Leadership) Term() int64 { return l.held().Token() }

// Value returns the last value announced by Campaign or by a Proclaim that returned nil.
func (l *Leadership) Value() string { return (*election.Leadership)(l).Value() }

// Proclaim announces another value, of at most 65,536 bytes, under the same term. If several calls
// are in flight, the one that began last decides.
//
// A nil error means that the server stored the value, or a later one of this leadership. ErrNotHeld
// means that the leadership is over, with this call at the latest, and nothing was changed; ErrLost
// matches too if it was lost. Otherwise the error matches ErrUnavailable, ErrClosed, ErrInvalid,
// ErrWrongKind, or is a *rueidis.RedisError. ErrUnknownOutcome besides ErrUnavailable means that
// the value was sent and not answered: it may be announced while the leadership lasts, so call
// Proclaim again.
func (l *Leadership) Proclaim(ctx context.Context, value string) error {
	return (*election.Leadership)(l).Proclaim(ctx, value)
}

// Resign ends the leadership, and gives it to the next candidate, as [Hold.Unlock] releases a lock,
// with its errors. Twice Options.RetryBudget bounds it.
func (l *Leadership) Resign(ctx context.Context) error { return (*election.Leadership)(l).Resign(ctx) }
