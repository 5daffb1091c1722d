// Package identity has owners, holders, the ids of clients and permits, and the texts by which
// people know them: who holds something.
package identity

import (
	"context"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/latchkey-go/latchkey/internal/base/fault"
)

// Owner names the holder of a lock. Owners are comparable. The zero Owner means no owner.
type Owner struct {
	client string
	number uint64
	text   string // instead of both: an owner that cannot re-enter, as it is in Redis
}

// New returns an owner of a client: the id of the client and a number.
func New(client string, number uint64) Owner { return Owner{client: client, number: number} }

// OfText returns an owner that cannot re-enter, such as the id of a permit.
func OfText(text string) Owner { return Owner{text: text} }

// Parse parses the text of an owner of this library, or the id and thread of a Redisson client. Any
// other text is an ErrInvalid.
func Parse(text string) (Owner, error) {
	client, digits, found := strings.Cut(text, ":")
	id, err := uuid.Parse(client)
	if !found || err != nil || id.String() != client {
		return Owner{}, fault.Invalid("owner %.80q is not a client id and a number", text)
	}
	number, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || strconv.FormatUint(number, 10) != digits {
		return Owner{}, fault.Invalid("owner %.80q is not a client id and a number", text)
	}
	return Owner{client: client, number: number}, nil
}

// Of returns the owner for its text in Redis, which may come from another library.
func Of(text string) Owner {
	owner, err := Parse(text)
	if err != nil {
		return Owner{text: text}
	}
	return owner
}

// String returns the owner exactly as it is in Redis, or "" for the zero Owner.
func (o Owner) String() string {
	if o.client == "" {
		return o.text
	}
	text := make([]byte, 0, 64)
	text = append(text, o.client...)
	text = append(text, ':')
	return string(strconv.AppendUint(text, o.number, 10))
}

// IsZero reports whether o is the zero Owner.
func (o Owner) IsZero() bool { return o == Owner{} }

// ClientID returns the id of the client that made the owner, or "".
func (o Owner) ClientID() string { return o.client }

// Number returns the number of the owner among those of its client, or the thread of a Redisson
// client.
func (o Owner) Number() uint64 { return o.number }

// Reentrant reports whether o has the format of an owner that can re-enter a lock.
func (o Owner) Reentrant() bool { return o.client != "" }

// MayReenter returns an ErrInvalid if o cannot re-enter any lock.
func (o Owner) MayReenter() error {
	if o.IsZero() {
		return fault.Invalid("the owner is empty; Client.NewOwner makes one")
	}
	if !o.Reentrant() {
		return fault.Invalid("owner %.80q cannot re-enter a lock: "+
			"it is neither an owner of this library nor a thread of Redisson", o.text)
	}
	return nil
}

// IsOurs reports whether an owner, as it is in Redis, was made by this library: see NewClientID.
func IsOurs(owner string) bool { return len(owner) > 36 && owner[14] == '8' }

// NewClientID makes a UUID of version 8. Redisson uses version 4, so the version tells
// whether an owner belongs to this library.
func NewClientID() string {
	id := uuid.New()
	id[6] = id[6]&0x0f | 0x80
	return id.String()
}

type ownerKey struct{}

// WithOwner returns a context in which acquisitions belong to owner.
func WithOwner(ctx context.Context, owner Owner) context.Context {
	return context.WithValue(ctx, ownerKey{}, owner)
}

// OwnerFrom returns the owner that ctx carries, or the zero Owner.
func OwnerFrom(ctx context.Context) (Owner, error) {
	owner, _ := ctx.Value(ownerKey{}).(Owner)
	if owner.IsZero() {
		return owner, nil
	}
	return owner, owner.MayReenter()
}
