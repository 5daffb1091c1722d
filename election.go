package latchkey

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/renewal"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// MaxValueLength is the maximum length, in bytes, of the value that a leader announces.
const MaxValueLength = 64 << 10

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
type Election struct {
	synchronizer

	lock *acquirable
	seen []string // the keys of the lock, of the leader's announcement, and of the terms
}

// NewElection returns the election with that name. It sends nothing. If braces enclose the whole
// name, as in {x}, every call returns ErrInvalid, because the election would share the counter of
// terms with x.
func (c *Client) NewElection(name string) *Election {
	o := newSynchronizer(c.engine, keyspace.KindLock, name, leaderChannel)
	o.refuseWholeTag("an election")
	names := keyspace.OfKey(o.names.Name, o.names.Key)
	names.Invalid = o.names.Invalid
	p := acquirableOf(c.engine, electionSpec, names)
	return &Election{synchronizer: o, lock: p, seen: []string{o.names.Key, keyspace.LeaderKey(keyspace.Tag(o.names.Key)), o.names.Token()}}
}

// Client returns the client that made the object.
func (e *Election) Client() *Client { return (*Client)(e.client.handle) }

// electionSpec is a fenced lock whose owners are public. It is not re-entrant: if a candidate
// already leads, campaigning again is a mistake.
var electionSpec = &acquireSpec{
	spec: &spec{kind: keyspace.KindElection, family: keyspace.KindElection, stored: keyspace.KindLock,
		protocol: hashProtocol{}, renew: script.Renew, renewals: renewal.MostInBatch, fenced: true, passes: true, handsOver: true, public: true},
	attempts: hashProtocol{}, resolve: resolveOwner, fresh: freshOwner}

// leaderChannel is the channel for observers of an election. It differs from the channel of the
// lock, whose listeners count as waiters for the lock.
func leaderChannel(key string) string { return "latchkey:" + keyspace.Tag(key) + ":leader" }

// Campaign waits until the caller is the leader, and announces value to everybody. It waits until
// ctx ends or the time of [Wait] is over; without either limit it waits forever. Clients are served
// in the order in which they began to wait, and so are the candidates of one client. A candidate
// that comes while nobody leads is elected at once. The other options are [Lease], [MaxHold]
// and [Note]. With [By] or [AtLeast] Campaign returns ErrInvalid.
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
	return e.campaign(ctx, "campaign", true, value, settingsOf(options))
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
	return e.campaign(ctx, "try campaign", false, value, settingsOf(options))
}

// campaign wins, and announces the value. A leadership that was lost before its value was announced
// does not count: a call that waits keeps waiting.
func (e *Election) campaign(ctx context.Context, verb string, waits bool, value string, settings []request.Setting) (*Leadership, error) {
	if err := checkValue(value); err != nil {
		return nil, fault.Op(verb, e.names.Name, err)
	}
	ctx, cancel := boundBy(ctx, settings)
	defer cancel()
	for {
		h, err := e.lock.acquire(ctx, verb, waits, settings)
		if err != nil {
			return nil, err
		}
		l := newLeadership(e, h, value)
		if err = l.begin(ctx, waits); err == nil {
			return l, nil
		}
		lost := errors.Is(err, fault.ErrLost)
		if left := l.resignInTime(ctx); !lost && left != nil {
			err = errors.Join(err, left)
		}
		if !lost {
			return nil, fault.Op(verb, e.names.Name, err)
		}
		if !waits || ctx.Err() != nil {
			return nil, fault.Op(verb, e.names.Name, line.WithContextEnd(ctx, err))
		}
	}
}

// boundBy applies the Wait among the settings to all rounds of a campaign together. The first round
// refuses an invalid Wait.
func boundBy(ctx context.Context, settings []request.Setting) (context.Context, context.CancelFunc) {
	i := slices.IndexFunc(settings, func(s request.Setting) bool { return s.Kind == request.Wait && s.D > 0 })
	if i < 0 {
		return ctx, func() {}
	}
	return fault.WithWait(ctx, settings[i].D)
}

func checkValue(value string) error {
	if len(value) > MaxValueLength {
		return fault.Invalid("the value has %d bytes, more than %d", len(value), MaxValueLength)
	}
	return nil
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

// HoldFrom returns the hold of the leadership that ctx carries ([Leadership.Context], [Election.Run]), or nil, as
// [Lock.HoldFrom] does. Its [Hold.Token] is the term. It sends nothing to the server.
func (e *Election) HoldFrom(ctx context.Context) *Hold { return e.lock.HoldFrom(ctx) }

// Leader asks the server who leads. It returns the zero Leader if nobody leads, and
// also between an election and its announcement: a leader never appears with the value of another.
// It asks the master, never a replica. The answer may be out of date when it arrives.
//
// While the server is in trouble, Leader retries for Options.RetryBudget. The error matches
// ErrUnavailable if the server could not be reached in that time or before ctx ended, ErrClosed,
// ErrWrongKind if the key is another kind of object, ErrInvalid if the name is unusable, or is a
// *rueidis.RedisError if the server refuses.
func (e *Election) Leader(ctx context.Context) (Leader, error) {
	l, err := e.look(ctx)
	if err != nil {
		return Leader{}, fault.Op("leader", e.names.Name, e.explain(ctx, transport.Answer{}, err)...)
	}
	return l, nil
}

// look queries who leads. It changes nothing, so its outcome is never unknown.
func (e *Election) look(ctx context.Context) (Leader, error) {
	a, err := e.send(ctx, script.NewCall(script.ElectionLook, e.seen))
	if err != nil || a.Null {
		return Leader{}, err
	}
	return leaderOf(a)
}
