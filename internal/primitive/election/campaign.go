// Package election has the election: candidates that campaign for a lock, and the value and the
// term of the leader.
package election

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/object"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/engine/renewal"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/primitive/lock"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// MaxValue is the maximum length, in bytes, of the value that a leader announces.
const MaxValue = 64 << 10

// Election is the inside of an Election: a lock, and what the server keeps beside it.
type Election struct {
	object.Object

	lock *acquire.Lock
	seen []string // the keys of the lock, of the leader's announcement, and of the terms
}

// New returns the election with that name.
func New(c *core.Parts, name string) Election {
	o := object.New(c, keyspace.KindLock, name, Channel)
	o.RefuseWholeTag("an election")
	names := keyspace.OfKey(o.Names.Name, o.Names.Key)
	names.Invalid = o.Names.Invalid
	p := acquire.LockOf(c, Spec, names)
	seen := []string{o.Names.Key, keyspace.LeaderKey(keyspace.Tag(o.Names.Key)), o.Names.Token()}
	return Election{Object: o, lock: p, seen: seen}
}

// Spec is a fenced lock whose owners are public. It is not re-entrant: if a candidate
// already leads, campaigning again is a mistake.
var Spec = &acquire.Spec{
	Spec: &ownership.Spec{
		Kind: keyspace.KindElection, Family: keyspace.KindElection, Stored: keyspace.KindLock,
		Protocol: lock.Hash{},
		Renew:    script.Renew, Renewals: renewal.MostInBatch,
		Fenced: true, Public: true,
		Passes: true,
	},
	Attempts: lock.Hash{},
}

// Channel is the channel for observers of an election. It differs from the channel of the
// lock, whose listeners count as waiters for the lock.
func Channel(key string) string { return "latchkey:" + keyspace.Tag(key) + ":leader" }

// Campaign wins, and announces the value. A leadership that was lost before its value was announced
// does not count: a call that waits keeps waiting.
func (e *Election) Campaign(
	ctx context.Context, verb string, waits bool, value string, settings []request.Setting,
) (*Leadership, error) {
	if err := checkValue(value); err != nil {
		return nil, fault.Op(verb, e.Names.Name, err)
	}
	ctx, cancel := boundBy(ctx, settings)
	defer cancel()
	for {
		h, err := e.lock.Acquire(ctx, verb, waits, settings)
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
			return nil, fault.Op(verb, e.Names.Name, err)
		}
		if !waits || ctx.Err() != nil {
			return nil, fault.Op(verb, e.Names.Name, line.WithContextEnd(ctx, err))
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
	if len(value) > MaxValue {
		return fault.Invalid("the value has %d bytes, more than %d", len(value), MaxValue)
	}
	return nil
}

// HandleFrom returns the hold of the leadership that ctx carries, or nil.
func (e *Election) HandleFrom(ctx context.Context) *hold.Handle { return e.lock.HandleFrom(ctx) }

// Leader is the leader of an election at the time of the server's answer. The zero leader means
// that nobody leads.
type Leader struct {
	Value string
	Term  int64
	Owner identity.Owner
	Label string
	Since time.Time
	Age   time.Duration
	Lease time.Duration
}

// QueryLeader returns who leads, or an error for the program.
func (e *Election) QueryLeader(ctx context.Context) (Leader, error) {
	l, err := e.look(ctx)
	if err != nil {
		return Leader{}, fault.Op("leader", e.Names.Name, e.Explain(ctx, transport.Answer{}, err)...)
	}
	return l, nil
}

// look queries who leads. It changes nothing, so its outcome is never unknown.
func (e *Election) look(ctx context.Context) (Leader, error) {
	a, err := e.Send(ctx, script.NewCall(script.ElectionLook, e.seen))
	if err != nil || a.Null {
		return Leader{}, err
	}
	return readLeader(a)
}

// readLeader reads the reply of lua/election/look.lua.
func readLeader(a transport.Answer) (Leader, error) {
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
		Value: words[5], Term: numbers[0],
		Owner: identity.Of(words[0]), Label: identity.CleanText(words[6], identity.MaxLabel),
		Since: time.UnixMilli(numbers[1]), Age: script.FromMillis(numbers[2]), Lease: script.FromPTTL(numbers[3]),
	}, nil
}
