package script

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/transport"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// Numbers and times as they are sent to the server and as it returns them.

// ErrReply means that the reply is none that a script of this library sends.
var ErrReply = fault.Sub("latchkey: reply not understood", fault.ErrUnavailable)

// FromPTTL converts the reply of PTTL to a duration.
func FromPTTL(ms int64) time.Duration {
	switch {
	case ms == -1:
		return lease.NoExpiry
	case ms < 0:
		return 0
	}
	return FromMillis(ms)
}

// FromMillis returns a duration of ms, or the longest one that ends.
func FromMillis(ms int64) time.Duration {
	if ms > int64((lease.NoExpiry-1)/time.Millisecond) {
		return lease.NoExpiry - 1
	}
	return time.Duration(ms) * time.Millisecond
}

// Int reads an integer reply.
func Int(a transport.Answer) (int, error) {
	n, err := a.Message.AsInt64()
	if err != nil {
		return 0, errors.Join(ErrReply, err)
	}
	return int(n), nil
}

// Bool reads an answer that is 1 or 0.
func Bool(a transport.Answer, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	n, err := Int(a)
	return n == 1, err
}

// Millis rounds up: a lease of 1.5 ms must not end after one.
func Millis(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

// MillisText returns the ms of a duration as they are sent.
func MillisText(d time.Duration) string { return strconv.FormatInt(Millis(d), 10) }

// Token reads the fencing token from the reply of an acquisition.
func Token(a transport.Answer) int64 {
	if a.Null || a.Plain {
		return 0
	}
	token, _ := a.Message.AsInt64()
	return token
}

// Granted reports whether the answer grants the acquisition.
func Granted(a transport.Answer) bool {
	return !a.Message.IsInt64() && !a.Message.IsArray() && !(a.Plain && a.Null)
}

// Freed reports whether the answer to a release says that the lock became free, even if only to be
// handed over.
func Freed(a transport.Answer) bool { return a.Message.IsInt64() || a.Message.IsArray() }

// Stays reports whether the answer to a release says that others still hold the lock. After a null
// reply nobody knows: an earlier release has run, and may have granted the lock to the next owner
// of this client.
func Stays(a transport.Answer) bool { return !Freed(a) && !a.Null }

// Receivers returns how many subscribers received the message of a release that left the lock free,
// -1 if the server refused the message. It reports false for any other answer.
func Receivers(release transport.Answer) (n int64, free bool) {
	if !release.Message.IsInt64() {
		return 0, false
	}
	n, _ = release.Message.AsInt64()
	return n, true
}

// Denials returns the results of a script about several holds that replicas did not confirm, or
// nil. Only a 0 counts: that a hold is gone needs no confirmation.
func Denials(err error) []int64 {
	reply, _ := transport.Unconfirmed(err)
	results, _ := reply.AsIntSlice()
	return results
}

// DeniedHold is Denials for a script about one hold.
func DeniedHold(err error) bool {
	reply, found := transport.Unconfirmed(err)
	if !found {
		return false
	}
	n, failed := reply.AsInt64()
	return failed == nil && n == 0 || slices.Equal(Denials(err), []int64{0})
}

// ReadRenewal reads the outcome of a renewal: its result, 0 if the owner had lost the key, or the
// causes of an error.
func ReadRenewal(a transport.Answer, err error) (result int64, causes []error) {
	switch {
	case DeniedHold(err):
		return 0, nil
	case err != nil && a.Doubt:
		return 0, []error{fault.ErrUnknownOutcome, err}
	case err != nil:
		return 0, []error{err}
	}
	results, err := a.Message.AsIntSlice()
	if err != nil || len(results) != 1 || results[0] < 0 {
		return 0, []error{fault.ErrUnknownOutcome, outcome.Unavailable(errors.Join(ErrReply, err))}
	}
	return results[0], nil
}
