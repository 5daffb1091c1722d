package latchkey

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/labels"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// Inspection is what Redis stored under one name at one moment.
type Inspection struct {
	Name string // as the program gave it
	Key  string // as it is in Redis
	// Kind is KindMutex, KindLock (which re-entrant, fenced and spin locks share) or KindRWLock;
	// KindNone for a free name; KindSemaphore, KindLatch, KindNumber or KindBarrier; or KindUnknown
	// for anything else. Data of an application that looks like the token of a mutex is reported as
	// one.
	Kind Kind
	// What is the kind in words, also of foreign data: "a lock", "a list", "a hash without any lock
	// owner". It is "" for a free name.
	What    string
	TTL     time.Duration // time until the key expires: 0 when free, NoExpiry if it does not
	Holders []Holder      // of a lock, in the order of their owners; empty otherwise
	Token   int64         // the last fencing token issued under the name, 0 if none
}

// Locked reports whether the name is a lock that is held. A semaphore, a latch, a barrier and data
// of an application are not locked.
func (i Inspection) Locked() bool {
	switch i.Kind {
	case KindMutex, KindLock, KindRWLock, KindMulti, KindRed:
		return true
	}
	return false
}

// Inspect returns what is stored under a name, whatever kind of object it is. It reads from the
// server that decides about the lock, never from a replica. The answer may be out of date when it
// arrives. A free name has the kind [KindNone]. Foreign data is not an error: Kind is
// [KindUnknown], and What says what it is.
//
// If other clients of this library hold the lock, their labels and the notes of their holds take
// one more command for every 64 clients, or, in a cluster, for every client. Those that cannot be
// read within a second are missing.
//
// Inspect repeats the request for Options.RetryBudget while the server is in trouble. The error
// matches ErrUnavailable if the server could not be reached in that time or before ctx ended,
// ErrClosed, ErrInvalid if the name cannot be used, or is a *rueidis.RedisError if the server
// refuses.
func (c *Client) Inspect(ctx context.Context, name string) (Inspection, error) {
	names, err := c.engine.Config.Naming().Keys(name)
	if err != nil {
		return Inspection{}, fault.Op("inspect", name, err)
	}
	i, err := c.engine.inspect(ctx, names, "")
	if err != nil {
		return i, fault.Op("inspect", name, err)
	}
	c.engine.describeHolders(ctx, 0, i.Holders)
	return i, nil
}

// describeHolders adds labels and notes to holders.
func (c *engine) describeHolders(ctx context.Context, trust time.Duration, lists ...[]Holder) {
	labels.DescribeEach(ctx, c.Labels, trust, lists, func(h Holder) identity.Owner { return identity.Owner(h.Owner) }, func(h *Holder, d labels.Description) {
		h.Label = d.Label
		if !h.Kept { // the hold is over: its client's note may be older, or about another hold
			h.Note = d.Note
		}
	})
}

// inspect is Inspect without labels and notes. With "1" for onlyMaster, and not "", only a server that accepts
// writes may reply that the name is free.
func (c *engine) inspect(ctx context.Context, names *keyspace.Keys, onlyMaster string) (Inspection, error) {
	i := Inspection{Name: names.Name, Key: names.Key}
	if err := c.Begin(ctx); err != nil {
		return i, err
	}
	defer c.Done()
	a, err := c.Send(ctx, script.NewCall(script.Inspect, []string{names.Key, names.Token()}, onlyMaster))
	if err != nil {
		return i, err
	}
	if err = i.read(a.Message); err == nil && i.Kind == KindNumber {
		i.Kind = c.kindOfNumber(ctx, names.Key)
		i.What = keyspace.Noun(keyspace.Kind(i.Kind))
	}
	return i, err
}

// kindOfNumber returns KindSemaphore or KindLatch if the keys next to a number show it, else
// KindNumber.
func (c *engine) kindOfNumber(ctx context.Context, key string) Kind {
	tag := keyspace.Tag(key)
	a, err := c.Send(ctx, script.NewCall(script.InspectNumber, []string{keyspace.LatchKey(tag), keyspace.TotalKey(tag), keyspace.PermitIDsKey(key), keyspace.NumberKindKey(key)}))
	if err != nil {
		return KindNumber
	}
	found, _ := a.Message.ToString()
	return cmp.Or(Kind(found), KindNumber)
}

// read parses the reply of lua/look/inspect.lua.
func (i *Inspection) read(reply rueidis.RedisMessage) error {
	parts, err := reply.ToArray()
	if err != nil || len(parts) != 4 {
		return errors.Join(script.ErrReply, err)
	}
	return i.readParts(parts)
}

// readParts reads the type, the remaining ms, the token and the content.
func (i *Inspection) readParts(parts []rueidis.RedisMessage) error {
	redisType, err1 := parts[0].ToString()
	ttl, err2 := parts[1].AsInt64()
	content, err3 := parts[3].AsStrSlice()
	if err := errors.Join(err1, err2, err3); err != nil {
		return errors.Join(script.ErrReply, err)
	}
	if !parts[2].IsNil() {
		i.Token, _ = parts[2].AsInt64()
	}
	i.TTL = script.FromPTTL(ttl)
	i.recognize(redisType, content)
	return nil
}

// recognize determines the kind of the key, by the rule in internal/base/keyspace/shape.go.
func (i *Inspection) recognize(redisType string, content []string) {
	expires := i.TTL != lease.NoExpiry
	i.Kind = KindUnknown
	switch {
	case redisType == "none":
		i.Kind = KindNone
		return
	case redisType == "hash" && keyspace.IsBarrier(content):
		i.Kind = KindBarrier
	case redisType == "hash":
		kind, holders := keyspace.HashShape(content)
		i.Kind = Kind(kind)
		for _, h := range holders {
			i.Holders = append(i.Holders, holderOf(h))
		}
	case redisType != "string" || len(content) != 1:
	case keyspace.IsNumber(content[0]):
		i.Kind = KindNumber
	case keyspace.IsToken(content[0], expires):
		i.Kind, i.Holders = KindMutex, []Holder{holderOf(identity.ReadHolder(content[0], 1, false))}
	}
	slices.SortFunc(i.Holders, func(a, b Holder) int { return strings.Compare(a.Owner.String(), b.Owner.String()) })
	if i.What = keyspace.Noun(keyspace.Kind(i.Kind)); i.What == "" {
		i.What = keyspace.ForeignNoun(redisType, expires, content)
	}
}

// wrongKind replaces the server's error about the type of a key by an ErrWrongKind that says what
// is there. Any other error stays as it is.
func (c *engine) wrongKind(ctx context.Context, names *keyspace.Keys, want keyspace.Kind, err error) error {
	if !transport.HasCode(err, "WRONGTYPE") || errors.Is(err, fault.ErrWrongKind) {
		return err
	}
	if _, kinds, told := strings.Cut(err.Error(), "LATCHKEY_KIND "); told {
		return fault.OtherKind(kinds, err)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*transport.LongPause)
	defer cancel()
	i, failed := c.inspect(ctx, names, "")
	number := want == keyspace.KindSemaphore || want == keyspace.KindLatch
	if failed == nil && (i.Kind == Kind(want) || i.Kind == KindNumber && number) {
		return fault.OtherKind(keyspace.Noun(want)+", but a key that belongs to it holds something else", err)
	}
	return fault.WrongKind(keyspace.Noun(want), i.What, err)
}
