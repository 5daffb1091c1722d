package latchkey

import (
	"context"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// Owner names who holds a lock, in the shape that Redisson uses: the id of a
// client and a number. It is a value to compare, print and parse; the zero value
// is no owner.
//
// Owners are made by the library, one for each outermost acquisition. A program
// needs one only to re-enter a lock without the context of its hold ([By],
// [WithOwner]), or to join a hold from another process ([ParseOwner]).
type Owner struct {
	client string
	number uint64
}

// String returns the owner as it stands in Redis, the client's id and the
// number separated by a colon, or "" for the zero Owner.
func (o Owner) String() string {
	if o.IsZero() {
		return ""
	}
	text := make([]byte, 0, 64)
	text = append(text, o.client...)
	text = append(text, ':')
	return string(strconv.AppendUint(text, o.number, 10))
}

// IsZero reports whether o is no owner at all.
func (o Owner) IsZero() bool { return o.client == "" }

// ParseOwner reads what [Owner.String] wrote, in this or in another process.
// Anything else is an ErrInvalid.
//
// A process that joins a hold by such an owner shares it: the lock is free when
// every process has released its part. Hand-over is therefore: the new process
// acquires with [By], then the old one unlocks.
func ParseOwner(text string) (Owner, error) {
	client, digits, found := strings.Cut(text, ":")
	id, err := uuid.Parse(client)
	if !found || err != nil || id.String() != client {
		return Owner{}, invalid("owner %q is not a client id and a number", text)
	}
	number, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || strconv.FormatUint(number, 10) != digits {
		return Owner{}, invalid("owner %q is not a client id and a number", text)
	}
	return Owner{client: client, number: number}, nil
}

func isOwner(text string) bool {
	_, err := ParseOwner(text)
	return err == nil
}

type ownerKey struct{}

// WithOwner returns a context under which acquisitions that do not re-enter a
// hold of their own lock belong to owner: two acquisitions of one lock by one
// owner are a hold and its re-entry, whatever goroutine makes them. The zero
// Owner takes an owner off the context again.
//
// The owner names a logical task of one client, usually made by
// [Client.NewOwner]. Each outermost acquisition still gets a number of its own
// in Redis; that one is [Hold.Owner], and the one to hand to other processes.
func WithOwner(ctx context.Context, owner Owner) context.Context {
	return context.WithValue(ctx, ownerKey{}, owner)
}

func ownerFrom(ctx context.Context) Owner {
	owner, _ := ctx.Value(ownerKey{}).(Owner)
	return owner
}
