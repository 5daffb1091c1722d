package latchkey

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// Numbers and times as they are sent to the server and as it returns them.

// errReply means that the reply is none that a script of this library sends.
var errReply = fault.Sub("latchkey: reply not understood", fault.ErrUnavailable)

// ttlOf converts the reply of PTTL to a duration.
func ttlOf(ms int64) time.Duration {
	switch {
	case ms == -1:
		return lease.NoExpiry
	case ms < 0:
		return 0
	}
	return fromMillis(ms)
}

// fromMillis returns a duration of ms, or the longest one that ends.
func fromMillis(ms int64) time.Duration {
	if ms > int64((lease.NoExpiry-1)/time.Millisecond) {
		return lease.NoExpiry - 1
	}
	return time.Duration(ms) * time.Millisecond
}

// parseCount reads a hold count.
func parseCount(text string) (int, bool) {
	count, err := strconv.Atoi(text)
	return count, err == nil
}

// intOf reads an integer reply.
func intOf(a transport.Answer) (int, error) {
	n, err := a.Message.AsInt64()
	if err != nil {
		return 0, errors.Join(errReply, err)
	}
	return int(n), nil
}

// boolOf reads an answer that is 1 or 0.
func boolOf(a transport.Answer, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	n, err := intOf(a)
	return n == 1, err
}

// millis rounds up: a lease of 1.5 ms must not end after one.
func millis(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

// millisText returns the ms of a duration as they are sent.
func millisText(d time.Duration) string { return strconv.FormatInt(millis(d), 10) }

// maxCount is the largest count that Redisson supports.
const maxCount = math.MaxInt32

// tokenOf reads the fencing token from the reply of an acquisition.
func tokenOf(a transport.Answer) int64 {
	if a.Null || a.Plain {
		return 0
	}
	token, _ := a.Message.AsInt64()
	return token
}

// granted reports whether the answer grants the acquisition.
func granted(a transport.Answer) bool {
	return !a.Message.IsInt64() && !a.Message.IsArray() && !(a.Plain && a.Null)
}

// freed reports whether the answer to a release says that the lock became free, even if only to be handed over.
func freed(a transport.Answer) bool { return a.Message.IsInt64() || a.Message.IsArray() }

// stays reports whether the answer to a release says that others still hold the lock. After a null reply nobody
// knows: an earlier release has run, and may have granted the lock to the next owner of this client.
func stays(a transport.Answer) bool { return !freed(a) && !a.Null }

// receiversOf returns how many subscribers received the message of a release that left the lock free, -1 if the
// server refused the message. It reports false for any other answer.
func receiversOf(release transport.Answer) (n int64, free bool) {
	if !release.Message.IsInt64() {
		return 0, false
	}
	n, _ = release.Message.AsInt64()
	return n, true
}

// denials returns the results of a script about several holds that replicas did not confirm, or nil. Only a 0
// counts: that a hold is gone needs no confirmation.
func denials(err error) []int64 {
	reply, _ := transport.Unconfirmed(err)
	results, _ := reply.AsIntSlice()
	return results
}

// deniedHold is denials for a script about one hold.
func deniedHold(err error) bool {
	reply, found := transport.Unconfirmed(err)
	if !found {
		return false
	}
	n, failed := reply.AsInt64()
	return failed == nil && n == 0 || slices.Equal(denials(err), []int64{0})
}
