// Package rw has the two sides of a read/write lock.
package rw

import (
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/engine/queue"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// A read/write lock is stored in Redis as a hash with the mode and the owners of both sides.
// Separate keys have the leases of its readers, and the waiting writers.

// readProtocol stores a reader in the hash of a read/write lock.
type readProtocol struct{}

// readNumber distinguishes an ownership that reads for an owner that writes from others under the
// same name. It is "" for any other ownership. The server ignores commands with an older number:
// the late release of an earlier read must not end this one.
func readNumber(o *ownership.Ownership) string {
	if !o.IsNested() {
		return ""
	}
	return strconv.FormatUint(o.Number, 10)
}

// AcquireCall implements [acquire.Attempts].
func (readProtocol) AcquireCall(a *acquire.Acquisition, count, round int) script.Call {
	o, holds := a.Ownership, strconv.Itoa(count)
	waits := "0"
	switch {
	case a.IsWaiting && round > 0:
		waits = "2"
	case a.IsWaiting:
		waits = "1"
	}
	return script.NewCall(script.RWReadAcquire, append(Keys(o.Names.Key), LeaseKeys(o.Names.Key, o.Wire)+holds),
		o.Wire, o.Client.LeaseText(a.Lease), holds, readNumber(o), waits, o.Client.StaleMS)
}

// ReadRefusal implements [acquire.Attempts].
func (readProtocol) ReadRefusal(a *acquire.Acquisition, ans transport.Answer) (time.Duration, error) {
	return readRWRefusal(a, ans, "waiting writers")
}

// ReleaseCall implements [ownership.Protocol].
func (readProtocol) ReleaseCall(o *ownership.Ownership, to ownership.Release, args []string) script.Call {
	names := o.Names
	keys := AppendLeaseKeys(append(Keys(names.Key), names.Queue()), names.Key, o.Wire, to.Most)
	args = append(args,
		o.Wire, strconv.Itoa(to.Count), readNumber(o), o.Client.Publish, names.Channel, script.MillisText(to.Raise))
	args = append(o.Client.Inbox.ChannelArgs(args, names.Key), line.PresenceChannel(names.Key), names.Queue())
	return script.NewCall(script.RWReadRelease, keys, args...)
}

// RenewalCall implements [ownership.Protocol].
func (readProtocol) RenewalCall(o *ownership.Ownership, lease time.Duration) script.Call {
	return rwRenewal(o, "read", readNumber(o), o.Count(), lease)
}

func readRenewals(o *ownership.Ownership, lease time.Duration) []script.Call {
	return rwRenewals(o, o.Wire, readNumber(o), o.Count(), lease)
}

// writeProtocol stores the writer in the hash of a read/write lock.
type writeProtocol struct{}

// AcquireCall implements [acquire.Attempts].
func (writeProtocol) AcquireCall(a *acquire.Acquisition, count, round int) script.Call {
	o, stale, place := a.Ownership, "", queue.Place{}
	if a.IsWaiting {
		stale = o.Client.StaleMS
	}
	if count == 1 {
		place = a.QueuePlace(round)
	}
	c := script.Call{Cmd: script.RWWriteAcquire, Keys: Keys(o.Names.Key)}
	if place.Known() {
		c.Keys = append(c.Keys, o.Names.Queue())
	}
	c.Args = []string{
		o.Wire, o.Client.LeaseText(a.Lease), strconv.Itoa(count), stale,
		place.Entry, place.OldEntry, o.Names.Queue(), place.Poll,
	}
	return c
}

// ReadRefusal records that the server counts a waiting writer, and whether a stranger keeps it out.
func (writeProtocol) ReadRefusal(a *acquire.Acquisition, ans transport.Answer) (time.Duration, error) {
	if a.IsWaiting {
		a.Ownership.OwnEntry(a.Since).WaitBegins()
	}
	return readRWRefusal(a, ans, "waiting readers")
}

// ReleaseCall implements [ownership.Protocol].
func (writeProtocol) ReleaseCall(o *ownership.Ownership, to ownership.Release, args []string) script.Call {
	names := o.Names
	c := script.Call{Cmd: script.RWWriteRelease, Keys: append(Keys(names.Key), names.Queue())}
	args = append(args,
		o.Wire, strconv.Itoa(to.Count), to.MayWaitArg(), o.Client.Publish, names.Channel, script.MillisText(to.Raise))
	c.Args = append(to.QueueArgs(args, o.Lock),
		line.PresenceChannel(names.Key), o.Client.StaleMS, names.Queue())
	if to.Keep > 0 {
		c.Args = append(c.Args, script.MillisText(to.Keep))
	}
	return c
}

// RenewalCall implements [ownership.Protocol].
func (writeProtocol) RenewalCall(o *ownership.Ownership, lease time.Duration) script.Call {
	return rwRenewal(o, "write", "", 0, lease)
}

func writeRenewals(o *ownership.Ownership, lease time.Duration) []script.Call {
	return rwRenewals(o, o.Wire+":write", "", 0, lease)
}

// rwRenewal names only keys that must exist: while the slot of the lock migrates, the server
// refuses a script unless all its keys are on one node.
func rwRenewal(o *ownership.Ownership, side, number string, reads int, lease time.Duration) script.Call {
	all := Keys(o.Names.Key)
	keys := AppendLeaseKeys(all[:2:2], o.Names.Key, o.Wire, reads)
	if number != "" {
		keys = append(keys, all[3])
	}
	return script.NewCall(script.RWRenew, keys,
		o.Wire, side, number, script.MillisText(lease), strconv.Itoa(reads))
}

// rwRenewals returns renewals of the leases first and of the lock last, which decides.
func rwRenewals(o *ownership.Ownership, field, number string, reads int, lease time.Duration) []script.Call {
	all := Keys(o.Names.Key)
	renew := func(what, key string) script.Call {
		return script.NewCall(script.RWRenewKey, []string{key}, what, field, script.MillisText(lease), number)
	}
	calls := []script.Call{renew("leases", all[1])}
	for _, key := range AppendLeaseKeys(nil, o.Names.Key, o.Wire, reads) {
		calls = append(calls, renew("lease key", key))
	}
	if number != "" {
		calls = append(calls, renew("notes", all[3]))
	}
	return append(calls, renew("lock", all[0]))
}

// Keys returns the key of the lock and the other keys of this library for it.
func Keys(key string) []string {
	tag := keyspace.Tag(key)
	return append(make([]string, 0, 6), key,
		"latchkey_rw_leases:"+tag, keyspace.WritersKey(tag), "latchkey_rw:"+tag)
}

// Channel returns the channel of a read/write lock.
func Channel(key string) string { return "redisson_rwlock:" + keyspace.Tag(key) }

// LeaseKeys returns the beginning of the keys of an owner's read leases, which end with a number.
func LeaseKeys(key, owner string) string {
	return keyspace.Tag(key) + ":" + owner + ":rwlock_timeout:"
}

// AppendLeaseKeys appends the lease keys of an owner's first read holds.
func AppendLeaseKeys(to []string, key, owner string, holds int) []string {
	prefix := LeaseKeys(key, owner)
	for i := range holds {
		to = append(to, prefix+strconv.Itoa(i+1))
	}
	return to
}

// evictBatch is how many holders one script removes, so that no script takes long.
const evictBatch = 200

// Evictions returns the calls that remove holders of a read/write lock, which are named as they are
// in Redis.
func Evictions(c *core.Parts, names *keyspace.Keys, holders []string) (calls []script.Call) {
	keys := append(Keys(names.Key), names.Queue())
	for len(holders) > 0 || calls == nil {
		some := holders[:min(len(holders), evictBatch)]
		holders = holders[len(some):]
		args := append(c.Inbox.ChannelArgs([]string{c.Publish, Channel(names.Key)}, names.Key), names.Queue())
		calls = append(calls, script.NewCall(script.RWEvict, keys, append(args, some...)...))
	}
	return calls
}
