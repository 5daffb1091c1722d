package latchkey

import (
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// A read/write lock is stored in Redis as a hash with the mode and the owners of both sides. Separate keys have
// the leases of its readers, and the waiting writers.

// readProtocol stores a reader in the hash of a read/write lock.
type readProtocol struct{}

// readNumber distinguishes an ownership that reads for an owner that writes from others under the same name. It
// is "" for any other ownership. The server ignores commands with an older number: the late release of an
// earlier read must not end this one.
func readNumber(o *ownership) string {
	if !o.isNested() {
		return ""
	}
	return strconv.FormatUint(o.number, 10)
}

func (readProtocol) acquireCall(a *acquisition, count, round int) script.Call {
	o, holds := a.ownership, strconv.Itoa(count)
	waits := "0"
	switch {
	case a.isWaiting && round > 0:
		waits = "2"
	case a.isWaiting:
		waits = "1"
	}
	return script.NewCall(script.RWReadAcquire, append(rwKeys(o.lock.names.Key), leaseKeys(o.lock.names.Key, o.wire)+holds),
		o.wire, o.lock.client.LeaseText(a.Lease), holds, readNumber(o), waits, o.lock.client.StaleMS)
}

func (readProtocol) readRefusal(a *acquisition, ans transport.Answer) (time.Duration, error) {
	return readRWRefusal(a, ans, "waiting writers")
}

func (readProtocol) releaseCall(o *ownership, to release, args []string) script.Call {
	c := script.Call{Cmd: script.RWReadRelease, Keys: appendLeaseKeys(append(rwKeys(o.lock.names.Key), o.lock.names.Queue()), o.lock.names.Key, o.wire, o.mostHolds())}
	args = append(args, o.wire, strconv.Itoa(to.count), readNumber(o), o.lock.client.Publish, o.lock.names.Channel, script.MillisText(to.raise))
	c.Args = append(o.lock.client.Inbox.ChannelArgs(args, o.lock.names.Key), line.PresenceChannel(o.lock.names.Key), o.lock.names.Queue())
	return c
}

func (readProtocol) renewalCall(o *ownership, lease time.Duration) script.Call {
	return rwRenewal(o, "read", readNumber(o), o.count(), lease)
}

func readRenewals(o *ownership, lease time.Duration) []script.Call {
	return rwRenewals(o, o.wire, readNumber(o), o.count(), lease)
}

// writeProtocol stores the writer in the hash of a read/write lock.
type writeProtocol struct{}

func (writeProtocol) acquireCall(a *acquisition, count, round int) script.Call {
	o, stale, place := a.ownership, "", queuePlace{}
	if a.isWaiting {
		stale = o.lock.client.StaleMS
	}
	if count == 1 {
		place = a.queuePlace(round)
	}
	c := script.Call{Cmd: script.RWWriteAcquire, Keys: rwKeys(o.lock.names.Key)}
	if place.known() {
		c.Keys = append(c.Keys, o.lock.names.Queue())
	}
	c.Args = []string{o.wire, o.lock.client.LeaseText(a.Lease), strconv.Itoa(count), stale, place.entry, place.oldEntry, o.lock.names.Queue(), place.poll}
	return c
}

// readRefusal records that the server counts a waiting writer, and whether a stranger keeps it out.
func (writeProtocol) readRefusal(a *acquisition, ans transport.Answer) (time.Duration, error) {
	if a.isWaiting {
		a.ownership.markQueued()
	}
	return readRWRefusal(a, ans, "waiting readers")
}

func (writeProtocol) releaseCall(o *ownership, to release, args []string) script.Call {
	waiting := o.waitingArg()
	c := script.Call{Cmd: script.RWWriteRelease, Keys: append(rwKeys(o.lock.names.Key), o.lock.names.Queue())}
	args = append(args, o.wire, strconv.Itoa(to.count), waiting, o.lock.client.Publish, o.lock.names.Channel, script.MillisText(to.raise))
	c.Args = append(o.handoverArgs(args, to.count), line.PresenceChannel(o.lock.names.Key), o.lock.client.StaleMS, o.lock.names.Queue())
	if to.keep > 0 {
		c.Args = append(c.Args, script.MillisText(to.keep))
	}
	return c
}

func (writeProtocol) renewalCall(o *ownership, lease time.Duration) script.Call {
	return rwRenewal(o, "write", "", 0, lease)
}

func writeRenewals(o *ownership, lease time.Duration) []script.Call {
	return rwRenewals(o, o.wire+":write", "", 0, lease)
}

// rwRenewal names only keys that must exist: while the slot of the lock migrates, the server refuses a script
// unless all its keys are on one node.
func rwRenewal(o *ownership, side, number string, reads int, lease time.Duration) script.Call {
	all := rwKeys(o.lock.names.Key)
	keys := appendLeaseKeys(all[:2:2], o.lock.names.Key, o.wire, reads)
	if number != "" {
		keys = append(keys, all[3])
	}
	return script.NewCall(script.RWRenew, keys,
		o.wire, side, number, script.MillisText(lease), strconv.Itoa(reads))
}

// rwRenewals returns renewals of the leases first and of the lock last, which decides.
func rwRenewals(o *ownership, field, number string, reads int, lease time.Duration) []script.Call {
	all := rwKeys(o.lock.names.Key)
	renew := func(what, key string) script.Call {
		return script.NewCall(script.RWRenewKey, []string{key}, what, field, script.MillisText(lease), number)
	}
	calls := []script.Call{renew("leases", all[1])}
	for _, key := range appendLeaseKeys(nil, o.lock.names.Key, o.wire, reads) {
		calls = append(calls, renew("lease key", key))
	}
	if number != "" {
		calls = append(calls, renew("notes", all[3]))
	}
	return append(calls, renew("lock", all[0]))
}

// rwKeys returns the key of the lock and the other keys of this library for it.
func rwKeys(key string) []string {
	tag := keyspace.Tag(key)
	return append(make([]string, 0, 6), key,
		"latchkey_rw_leases:"+tag, keyspace.WritersKey(tag), "latchkey_rw:"+tag)
}

func rwChannel(key string) string { return "redisson_rwlock:" + keyspace.Tag(key) }

// leaseKeys returns the prefix of the keys of an owner's read leases.
func leaseKeys(key, owner string) string {
	return keyspace.Tag(key) + ":" + owner + ":rwlock_timeout:"
}

// appendLeaseKeys appends the lease keys of an owner's first read holds.
func appendLeaseKeys(to []string, key, owner string, holds int) []string {
	prefix := leaseKeys(key, owner)
	for i := range holds {
		to = append(to, prefix+strconv.Itoa(i+1))
	}
	return to
}

// evictBatch is how many holders one script removes, so that no script takes long.
const evictBatch = 200

// rwEvictions returns the calls that remove holders of a read/write lock, which are named as they are in Redis.
func rwEvictions(c *engine, names *keyspace.Keys, holders []string) (calls []script.Call) {
	keys := append(rwKeys(names.Key), names.Queue())
	for len(holders) > 0 || calls == nil {
		some := holders[:min(len(holders), evictBatch)]
		holders = holders[len(some):]
		args := append(c.Inbox.ChannelArgs([]string{c.Publish, rwChannel(names.Key)}, names.Key), names.Queue())
		calls = append(calls, script.NewCall(script.RWEvict, keys, append(args, some...)...))
	}
	return calls
}
