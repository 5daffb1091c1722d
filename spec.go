package latchkey

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// spec is what distinguishes one kind of lock from another; everything else they share.
type spec struct {
	kind      keyspace.Kind
	family    keyspace.Kind // kinds of one family may enter each other's holds
	stored    keyspace.Kind // what the key alone shows
	protocol  protocol
	renew     transport.Command // the script that renews it
	reentrant bool
	fenced    bool
	side      keyspace.Kind // of a lock with two sides, or ""
	line      line.Side     // in which its waiters wait
	permit    bool          // its owners are permits of a semaphore, not holders of a lock
	party     bool          // its owners are parties of a barrier, not holders of a lock
	renewals  int           // how many of its holds one script renews
	passes    bool          // its release passes it on to another owner: see passing.go and queueentry.go
	public    bool          // the program may know its owners from the start
	along     bool          // several goroutines of a client may share an ownership of it: see readalong.go
	handsOver bool          // its release may grant it to a waiting owner
	// grantMark is the letter by which entries in the queue and grants name it, or "" for a lock in a
	// hash: see lua/queue/hand_over.lua.
	grantMark string
	// lost is called when a hold ends without a call that ended it, and handles that. If it is nil,
	// the program is notified of a loss.
	lost func(*ownership)
	// inUse reports whether this client uses what a grant has given an owner, for owners that are
	// not numbers of this client; or nil.
	inUse  func(r *registry, key, owner string) bool
	recipe bool // other libraries implement it too, and publish nothing when they release it
	// renewEach returns the renewals of a hold with several keys, key by key, to be sent one after the other. The
	// hold is renewed if all of them succeed. It is nil for kinds with one key.
	renewEach func(o *ownership, lease time.Duration) []script.Call
	// channel is where its release is published, or nil for the channel of a lock.
	channel func(key string) string
}

// passesInside reports whether its ownerships are also passed on in memory. Each hold of a fenced lock takes its
// token from the server.
func (s *spec) passesInside() bool { return s.passes && !s.fenced }

// entryTokens is the token field of an owner's queue entry, with the kind of lock that the owner wants: see
// lua/queue/hand_over.lua.
func (s *spec) entryTokens(timed bool) string {
	switch {
	case !s.fenced:
		return "0" + s.grantMark
	case timed:
		return "1t"
	}
	return "1"
}

// isLock reports whether it is a kind of lock: its owners are neither permits nor parties.
func (s *spec) isLock() bool { return !s.permit && !s.party }

// isShared reports whether several owners may hold the lock at once.
func (s *spec) isShared() bool { return s.line == line.Shared }

// othersMayStay reports whether others may still hold the lock when its owner has released it: other readers,
// or the owner itself on the other side.
func (s *spec) othersMayStay() bool { return s.side != "" }

// ignoresOwnRelease reports whether a client need not handle the message of its own release, because the end of
// the hold wakes its waiters. A read/write lock has several holders, and the message may be of another one.
func (s *spec) ignoresOwnRelease() bool { return s.isLock() && s.side == "" }

// lineRests reports whether the waiters in line send nothing while this client holds the lock.
func (s *spec) lineRests() bool { return s.line == line.Only || s.passes }

// otherSide returns the other side of a lock with two.
func (s *spec) otherSide() keyspace.Kind {
	if s.side == keyspace.KindRead {
		return keyspace.KindWrite
	}
	return keyspace.KindRead
}
