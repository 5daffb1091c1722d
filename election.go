package latchkey

import (
	"context"
	"iter"
	"time"

	"github.com/latchkey-go/latchkey/internal/engine/hold"
	"github.com/latchkey-go/latchkey/internal/primitive/election"
)

// Election chooses one leader among any number of candidates, in any number of processes, and lets
// every process find out who leads. A [Leadership] is a hold of a [FencedLock] of the same name: it
// is renewed, it ends with the lease if its client crashes, and its fencing token is the term.
//
// Terms grow with every leadership, however it was won, as long as the server keeps its counter
// ([Options.TimeFencing] helps when it does not). The server knows each leader: a client does not pass
// leaderships on in memory.
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

// Client returns the client that made the election.
func (e *Election) Client() *Client { return (*Client)(e.inside.Client.Handle) }

// Campaign waits until the caller is the leader, and announces value to everybody. It waits until
// ctx ends or the time of [Wait] is over; without either limit it waits forever. Clients are served
// in the order in which they began to wait, and so are the candidates of one client. A candidate
// that comes while nobody leads is elected at once. The other options are [Lease], [MaxHold]
// and [Note]. With [As] or [AtLeast] Campaign returns ErrInvalid.
//
// The client renews the leadership until Resign, unless Lease fixes its lease. Canceling ctx after
// Campaign returns does not affect it. An election is not re-entrant: under the context of its own
// leadership ([Leadership.Context]) Campaign returns ErrInvalid at once.
//
// A nil error means that you lead, and that [Election.Leader] says so. After any other error this
// call leads nothing. While the server cannot be reached, Campaign keeps trying. The error matches
// one of
//
//   - ErrNotAcquired: another candidate led until ctx ended or the time of Wait was over
//   - ErrUnavailable: the server could not be reached or did not answer by the end of the wait
//   - ErrUnknownOutcome, besides one of these two: a request was sent and not answered, perhaps an
//     earlier one; the client undoes in the background what it may have acquired
//   - ErrNotReplicated: fewer replicas than [Options.Replicas] requires confirmed the leadership;
//     it was undone
//   - ErrClosed: the client is closed, or was closed during the call
//   - ErrWrongKind: the key is another kind of object, or data of an application
//   - ErrInvalid: the name, the value or an option is unusable, or ctx carries the leadership;
//     nothing was sent
//   - *rueidis.RedisError: the server refuses for a reason that waiting does not change, such as a
//     missing permission or a lack of memory
//
// No error matches both ErrNotAcquired and ErrUnavailable; the last attempt decides. If ctx ended,
// the error also matches that of ctx. The end of Wait matches no context error. If ctx had ended
// before the call, nothing was sent, and the error matches only that of ctx.
func (e *Election) Campaign(ctx context.Context, value string, options ...LockOption) (*Leadership, error) {
	l, err := e.inside.Campaign(ctx, "campaign", true, value, settingsOf(options))
	return (*Leadership)(l), err
}

// TryCampaign makes one attempt to become the leader. It does not wait for the present leader. The
// options are [Lease], [MaxHold] and [Note].
//
// ErrNotAcquired means that another candidate leads, or that the leadership was lost before its
// value was announced (ErrLost matches too). ErrUnavailable means that the server could not be
// reached: while the server is in trouble, TryCampaign repeats the attempt until it is answered,
// ctx ends, or Options.RetryBudget is spent. All other errors, and the state that they leave, are
// as for Campaign.
func (e *Election) TryCampaign(ctx context.Context, value string, options ...TryLockOption) (*Leadership, error) {
	l, err := e.inside.Campaign(ctx, "try campaign", false, value, settingsOf(options))
	return (*Leadership)(l), err
}

// Run leads again and again. It campaigns as Campaign does, with the same options, and calls fn
// when it leads. If the leadership is lost before Run has resigned, Run drops the result of fn and
// campaigns again. The context of fn ends when the leadership is lost (its cause then matches
// ErrLost) or ctx ends. fn must return then: Run waits for it, so that this process does not lead
// twice.
//
// If fn returns or panics while it leads, Run resigns, even if ctx has ended. Run then returns the
// error of fn, which may be nil: to lead again, call Run again.
//
// The error of Run is that of fn or of Campaign. If ctx ends during a campaign, the error matches
// that of ctx. ErrClosed means that the client was closed. If the resignation is not confirmed, the
// error matches ErrUnknownOutcome but not ErrUnavailable, in addition to the error of fn; the next
// leader may have to wait until the lease ends.
func (e *Election) Run(
	ctx context.Context, value string, fn func(ctx context.Context, l *Leadership) error, options ...LockOption,
) error {
	leads := func(ctx context.Context, l *election.Leadership) error { return fn(ctx, (*Leadership)(l)) }
	return e.inside.Run(ctx, value, leads, settingsOf(options))
}

// HoldFrom returns the hold of the leadership that ctx carries ([Leadership.Context], [Election.Run]), or nil, as
// [Lock.HoldFrom] does. Its [Hold.Token] is the term. It sends nothing to the server.
func (e *Election) HoldFrom(ctx context.Context) *Hold { return (*Hold)(e.inside.HandleFrom(ctx)) }

// Leader asks the server who leads. It returns the zero Leader if nobody leads, and
// also between an election and its announcement: a leader never appears with the value of another.
// It asks the master, never a replica. The answer may be out of date when it arrives.
//
// While the server is in trouble, Leader retries for Options.RetryBudget. The error matches
// ErrUnavailable if the server could not be reached in that time or before ctx ended, ErrClosed,
// ErrWrongKind if the key is another kind of object, ErrInvalid if the name is unusable, or is a
// *rueidis.RedisError if the server refuses.
func (e *Election) Leader(ctx context.Context) (Leader, error) {
	l, err := e.inside.QueryLeader(ctx)
	return leaderOf(l), err
}

// Observe yields the current leader, and then every change: a leader resigns, its lease ends, a new
// leader is elected, or the leader announces a new value. While nobody leads, it yields the zero
// Leader. Age and Lease are those at the time of the server's answer.
//
// If several changes follow each other quickly, Observe may yield only the last one, which always
// arrives: a message wakes the observer, and it also queries the server when the leader's lease
// ends, when its subscription begins or ends, and every Tuning.PollCeiling. Terms never go back
// while the server keeps its data. Observe queries the server again only after the loop body is
// done.
//
// If the server cannot be reached for Options.RetryBudget, Observe yields an error that matches
// ErrUnavailable, once. Another leader may have been elected since. It keeps trying, and yields the
// leader when the server answers, even if that is the same as before. Any other error ends the
// sequence: ErrClosed, ErrWrongKind if the key is another kind of object, ErrInvalid if the name is
// unusable, or a *rueidis.RedisError if the server refuses. When ctx ends, the sequence ends
// without an error. You may range over it again; it then starts from the beginning.
func (e *Election) Observe(ctx context.Context) iter.Seq2[Leader, error] {
	return func(yield func(Leader, error) bool) {
		e.inside.Observe(ctx, func(l election.Leader, err error) bool { return yield(leaderOf(l), err) })
	}
}

// Leader describes the leader of an election at the time of the server's answer. The zero Leader
// means that nobody leads.
type Leader struct {
	// Value is what the leader announced with Campaign or the last Proclaim.
	Value string
	// Term is the fencing token of the leadership. It is larger than that of every earlier leader.
	Term int64
	// Owner is the owner of the lock, as [Client.Inspect] shows it.
	Owner Owner
	// Label is the label of the leader's client ([Options].Label), or "". It is announced with the
	// value and needs no extra query.
	Label string
	// Since is when the leader was elected, by the clock of the server.
	Since time.Time
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
func (l *Leadership) Value() string { return (*election.Leadership)(l).Value() }

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
//   - ErrInvalid: the value is longer than 65,536 bytes
//   - ErrWrongKind: a key is another kind of object
//   - *rueidis.RedisError: the server refuses
func (l *Leadership) Proclaim(ctx context.Context, value string) error {
	return (*election.Leadership)(l).Proclaim(ctx, value)
}

// Resign ends the leadership, and gives it to the next candidate. It works even if ctx has ended:
// it uses only the values of ctx, and twice Options.RetryBudget bounds its time instead.
//
// A nil error means that the leadership lasted until this call and is over now. ErrNotHeld means
// that it was over before: resigned already, or lost (then ErrLost matches too). After any other
// error the client no longer renews the leadership, and repeats the release in the background until
// the lease has ended. You may call Resign again to wait for it: see [Hold.Unlock].
func (l *Leadership) Resign(ctx context.Context) error { return (*election.Leadership)(l).Resign(ctx) }
