// Package inspect reads what is stored under a name, and says what it is.
package inspect

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/labels"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
	"github.com/latchkey-go/latchkey/internal/transport/retry"
)

// most is how many owners of a lock an inspection lists.
const most = "20000"

// Object is what Redis stored under one name at one moment. Object of the root explains the fields.
type Object struct {
	Name    string
	Key     string
	Kind    keyspace.Kind
	What    string
	TTL     time.Duration
	Holders []Holder
	Token   int64

	HolderCount int
	Queued      int
	Listeners   int
	Available   int
	Total       int
	Count       int64
	Rate        keyspace.Rate
}

// Holder is an owner that holds a lock, with what people call its client and the hold.
type Holder struct {
	identity.Holder

	Label, Note string
}

// Locked reports whether the object is a lock that is held.
func (o *Object) Locked() bool {
	switch o.Kind {
	case keyspace.KindMutex, keyspace.KindLock, keyspace.KindRWLock, keyspace.KindMulti, keyspace.KindRed:
		return true
	}
	return false
}

// Inspector finds out what is stored under a name.
type Inspector struct {
	Query  func(context.Context, script.Call) (transport.Answer, error) // sends what changes nothing
	Labels *labels.Known
	Numsub string // the command that counts subscribers
}

// Inspect returns what is stored under a name, with the labels and notes of the holders. want is
// what it must be, in words, or "". If it is something else, Inspect returns that with an error.
func (n *Inspector) Inspect(ctx context.Context, names *keyspace.Keys, want string) (Object, error) {
	if names.Invalid != nil {
		return Object{}, fault.Op("inspect", names.Name, names.Invalid)
	}
	o, err := n.Find(ctx, names)
	if err != nil {
		return o, fault.Op("inspect", names.Name, err)
	}
	if o.Kind == keyspace.KindNumber {
		o.become(want)
	}
	if want != "" && o.Kind != keyspace.KindNone && o.What != want {
		return o, fault.Op("inspect", names.Name, fault.NotKind(want, o.What))
	}
	n.Describe(ctx, 0, o.Holders)
	return o, nil
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

// Find returns what is stored under a name. Only a server that accepts writes replies that the name
// is free.
func (n *Inspector) Find(ctx context.Context, names *keyspace.Keys) (Object, error) {
	o := Object{Name: names.Name, Key: names.Key}
	a, err := n.Query(ctx, script.NewCall(script.Look, names.LookKeys(), n.Numsub, most, "1"))
	if err != nil {
		return o, err
	}
	replies, err := a.Message.ToArray()
	if err != nil || len(replies) != 1 {
		return o, errors.Join(script.ErrReply, err)
	}
	return Read(names, replies[0])
}

// WrongKind replaces the server's error about the type of a key by an ErrWrongKind that says what
// is there. Any other error stays as it is.
func (n *Inspector) WrongKind(ctx context.Context, names *keyspace.Keys, want keyspace.Kind, err error) error {
	if !outcome.HasCode(err, "WRONGTYPE") || errors.Is(err, fault.ErrWrongKind) {
		return err
	}
	if _, kinds, told := strings.Cut(err.Error(), "LATCHKEY_KIND "); told {
		return fault.OtherKind(kinds+": use another name", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*retry.LongPause)
	defer cancel()
	o, failed := n.Find(ctx, names)
	number := want == keyspace.KindSemaphore || want == keyspace.KindLatch
	if failed == nil && (o.Kind == want || o.Kind == keyspace.KindNumber && number) {
		return fault.OtherKind(keyspace.Noun(want)+", but a key that belongs to it holds something else", err)
	}
	return fault.WrongKind(keyspace.Noun(want), o.What, err)
}
