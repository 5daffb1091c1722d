// Package inspect reads what is stored under a name, and says what it is.
package inspect

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
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
	"github.com/latchkey-go/latchkey/internal/transport/retry"
)

// Inspection is what Redis stored under one name at one moment. Inspection of the root explains the fields.
type Inspection struct {
	Name    string
	Key     string
	Kind    keyspace.Kind
	What    string
	TTL     time.Duration
	Holders []Holder
	Token   int64
}

// Holder is an owner that holds a lock, with what people call its client and the hold.
type Holder struct {
	identity.Holder

	Label, Note string
}

// Locked reports whether the name is a lock that is held.
func (i Inspection) Locked() bool {
	switch i.Kind {
	case keyspace.KindMutex, keyspace.KindLock, keyspace.KindRWLock, keyspace.KindMulti, keyspace.KindRed:
		return true
	}
	return false
}

// Inspector finds out what is stored under a name.
type Inspector struct {
	Query  func(context.Context, script.Call) (transport.Answer, error) // sends what changes nothing
	Labels *labels.Known
}

// Inspect returns what is stored under a name, with the labels and notes of the holders. It returns an error if that
// is another kind of lock than want, unless that is "".
func (n *Inspector) Inspect(ctx context.Context, names *keyspace.Keys, want keyspace.Kind) (Inspection, error) {
	i, err := n.Look(ctx, names, want)
	if err == nil {
		n.Describe(ctx, 0, i.Holders)
	}
	return i, err
}

// Look is Inspect without labels and notes.
func (n *Inspector) Look(ctx context.Context, names *keyspace.Keys, want keyspace.Kind) (Inspection, error) {
	if names.Invalid != nil {
		return Inspection{}, fault.Op("inspect", names.Name, names.Invalid)
	}
	i, err := n.Find(ctx, names, "")
	if err == nil && want != "" && i.Kind != keyspace.KindNone && i.Kind != want {
		err = fault.WrongKind(keyspace.Noun(want), i.What, nil)
	}
	if err != nil {
		return i, fault.Op("inspect", names.Name, err)
	}
	return i, nil
}

// Describe adds labels and notes to holders.
func (n *Inspector) Describe(ctx context.Context, trust time.Duration, lists ...[]Holder) {
	ownerOf := func(h Holder) identity.Owner { return h.Owner }
	labels.DescribeEach(ctx, n.Labels, trust, lists, ownerOf, func(h *Holder, d labels.Description) {
		h.Label = d.Label
		if !h.Kept { // the hold is over: its client's note may be older, or about another hold
			h.Note = d.Note
		}
	})
}

// Find returns what is stored under a name. With "1" for onlyMaster, and not "", only a server that accepts writes may
// reply that the name is free.
func (n *Inspector) Find(ctx context.Context, names *keyspace.Keys, onlyMaster string) (Inspection, error) {
	i := Inspection{Name: names.Name, Key: names.Key}
	a, err := n.Query(ctx, script.NewCall(script.Inspect, []string{names.Key, names.Token()}, onlyMaster))
	if err != nil {
		return i, err
	}
	if err = i.read(a.Message); err == nil && i.Kind == keyspace.KindNumber {
		i.Kind = n.kindOfNumber(ctx, names.Key)
		i.What = keyspace.Noun(i.Kind)
	}
	return i, err
}

// kindOfNumber returns KindSemaphore or KindLatch if the keys next to a number show it, else
// KindNumber.
func (n *Inspector) kindOfNumber(ctx context.Context, key string) keyspace.Kind {
	tag := keyspace.Tag(key)
	a, err := n.Query(ctx, script.NewCall(script.InspectNumber, []string{
		keyspace.LatchKey(tag), keyspace.TotalKey(tag), keyspace.PermitIDsKey(key), keyspace.NumberKindKey(key),
	}))
	if err != nil {
		return keyspace.KindNumber
	}
	found, _ := a.Message.ToString()
	return cmp.Or(keyspace.Kind(found), keyspace.KindNumber)
}

// read parses the reply of lua/look/inspect.lua.
func (i *Inspection) read(reply rueidis.RedisMessage) error {
	parts, err := reply.ToArray()
	if err != nil || len(parts) != 4 {
		return errors.Join(script.ErrReply, err)
	}
	return i.ReadParts(parts)
}

// ReadParts reads the type, the remaining ms, the token and the content.
func (i *Inspection) ReadParts(parts []rueidis.RedisMessage) error {
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
	i.Kind = keyspace.KindUnknown
	switch {
	case redisType == "none":
		i.Kind = keyspace.KindNone
		return
	case redisType == "hash" && keyspace.IsBarrier(content):
		i.Kind = keyspace.KindBarrier
	case redisType == "hash":
		var holders []identity.Holder
		i.Kind, holders = keyspace.HashShape(content)
		for _, h := range holders {
			i.Holders = append(i.Holders, Holder{Holder: h})
		}
	case redisType != "string" || len(content) != 1:
	case keyspace.IsNumber(content[0]):
		i.Kind = keyspace.KindNumber
	case keyspace.IsToken(content[0], expires):
		i.Kind, i.Holders = keyspace.KindMutex, []Holder{{Holder: identity.ReadHolder(content[0], 1, false)}}
	}
	slices.SortFunc(i.Holders, func(a, b Holder) int { return strings.Compare(a.Owner.String(), b.Owner.String()) })
	if i.What = keyspace.Noun(i.Kind); i.What == "" {
		i.What = keyspace.ForeignNoun(redisType, expires, content)
	}
}

// WrongKind replaces the server's error about the type of a key by an ErrWrongKind that says what
// is there. Any other error stays as it is.
func (n *Inspector) WrongKind(ctx context.Context, names *keyspace.Keys, want keyspace.Kind, err error) error {
	if !outcome.HasCode(err, "WRONGTYPE") || errors.Is(err, fault.ErrWrongKind) {
		return err
	}
	if _, kinds, told := strings.Cut(err.Error(), "LATCHKEY_KIND "); told {
		return fault.OtherKind(kinds, err)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*retry.LongPause)
	defer cancel()
	i, failed := n.Find(ctx, names, "")
	number := want == keyspace.KindSemaphore || want == keyspace.KindLatch
	if failed == nil && (i.Kind == want || i.Kind == keyspace.KindNumber && number) {
		return fault.OtherKind(keyspace.Noun(want)+", but a key that belongs to it holds something else", err)
	}
	return fault.WrongKind(keyspace.Noun(want), i.What, err)
}
