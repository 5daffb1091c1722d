package latchkey

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/base/identity"
)

// Owner names the holder of a lock. Owners are comparable with ==. The zero Owner means no owner.
//
// The library makes an owner for each outermost acquisition, in the format that Redisson uses: the
// id of a client, a colon and a number. You need one to re-enter a lock without the context of its
// hold ([As], [WithOwner]), to join a hold from another process ([Hold.Share], [ParseOwner]), or to
// compare it with a reported one. A reported owner may be other text: the token of a mutex that
// another library holds, or the id of a [Permit]; [As] and [WithOwner] refuse it.
type Owner identity.Owner

// String returns the owner exactly as it is in Redis, or "" for the zero Owner. A token of another
// library may be any bytes, including invalid UTF-8.
func (o Owner) String() string { return identity.Owner(o).String() }

// IsZero reports whether o is the zero Owner.
func (o Owner) IsZero() bool { return o == Owner{} }

// MarshalText returns the bytes of [Owner.String], and no error. JSON cannot represent an owner
// that is not UTF-8.
func (o Owner) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText sets o to the owner that [Owner.MarshalText] wrote, and returns no error. It
// accepts any text, since Inspect may report any. To read an owner for [As], use [ParseOwner].
func (o *Owner) UnmarshalText(text []byte) error {
	*o = Owner(identity.Of(string(text)))
	return nil
}

// ParseOwner parses the text that [Owner.String] returned for an owner of this library, in this or
// in another process, or the id and thread of a Redisson client. Any other text is an ErrInvalid.
func ParseOwner(text string) (Owner, error) {
	owner, err := identity.Parse(text)
	return Owner(owner), err
}

// WithOwner returns a context in which acquisitions belong to owner, unless they re-enter a hold of
// their own lock. Two acquisitions of one lock by one owner are a hold and its re-entry, in
// whatever goroutines they run. The zero Owner removes the owner from the context. With an owner
// that cannot re-enter, these acquisitions return ErrInvalid and send nothing.
//
// The owner names a logical task of one client, usually made by [Client.NewOwner]. Each outermost
// acquisition still gets a number of its own in Redis: [Hold.Owner] and [Hold.Share] return that
// one.
func WithOwner(ctx context.Context, owner Owner) context.Context {
	return identity.WithOwner(ctx, identity.Owner(owner))
}
