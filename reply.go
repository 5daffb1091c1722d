package latchkey

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// Numbers and times as they are sent to the server and come back.

// errReply means that the server answers what no script of ours replies.
var errReply error = &subError{"latchkey: reply not understood", ErrUnavailable}

// ttlOf turns PTTL into a duration.
func ttlOf(ms int64) time.Duration {
	switch {
	case ms == -1:
		return NoExpiry
	case ms < 0:
		return 0
	}
	return fromMillis(ms)
}

// fromMillis is a duration of ms, or the longest that there is.
func fromMillis(ms int64) time.Duration {
	if ms > int64((NoExpiry-1)/time.Millisecond) {
		return NoExpiry - 1
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

// maxCount is the largest number that Redisson can count.
const maxCount = math.MaxInt32

// NoExpiry is the duration of what does not end, in all arguments and results of this
// package. It is the longest [time.Duration], so that it compares as longer than every lease
// and every TTL; MaxLease is the longest that ends. Do not add to it.
//
// As an argument it is taken by [Lease] for a permit, by [PermitSemaphore.SetLease], and by
// SetTTL of semaphores and latches. As a result it means that the lease of a permit, or the
// key of a semaphore or latch, has no end; and of a lock that its key is damaged, since every
// lock has a lease.
const NoExpiry = time.Duration(math.MaxInt64)

// tokenOf reads the fencing token from the reply of an acquisition.
func tokenOf(a transport.Answer) int64 {
	if a.Null || a.Plain {
		return 0
	}
	token, _ := a.Message.AsInt64()
	return token
}

// granted reports whether the answer to an acquisition says yes.
func granted(a transport.Answer) bool {
	return !a.Message.IsInt64() && !a.Message.IsArray() && !(a.Plain && a.Null)
}

// freed reports whether the answer to a release says that the lock became free, if only to be
// handed over.
func freed(a transport.Answer) bool { return a.Message.IsInt64() || a.Message.IsArray() }

// denials are what a script says of several holds if replicas did not confirm it, or nil.
// That a hold is not there (0) needs no confirmation, and nothing else counts.
func denials(err error) []int64 {
	reply, _ := transport.Unconfirmed(err)
	results, _ := reply.AsIntSlice()
	return results
}

// deniedHold is denials for a script that is about one hold.
func deniedHold(err error) bool {
	reply, found := transport.Unconfirmed(err)
	if !found {
		return false
	}
	n, failed := reply.AsInt64()
	return failed == nil && n == 0 || slices.Equal(denials(err), []int64{0})
}
