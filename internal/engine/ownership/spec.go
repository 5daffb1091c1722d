package ownership

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// Spec is what distinguishes one kind of lock from another; everything else they share.
type Spec struct {
	Kind      keyspace.Kind
	Family    keyspace.Kind // kinds of one family may enter each other's holds
	Stored    keyspace.Kind // what the key alone shows
	Protocol  Protocol
	Renew     transport.Command // the script that renews it
	Reentrant bool
	Fenced    bool
	Side      keyspace.Kind // of a lock with two sides, or ""
	Line      line.Side     // in which its waiters wait
	Permit    bool          // its owners are permits of a semaphore, not holders of a lock
	Party     bool          // its owners are parties of a barrier, not holders of a lock
	Renewals  int           // how many of its holds one script renews
	Passes    bool          // its release passes it on to another owner: see passing.go, and internal/engine/queue
	Public    bool          // the program may know its owners from the start
	Along     bool          // several goroutines of a client may share an ownership of it: see readalong.go
	// GrantMark is the letter by which entries in the queue and grants name it, or "" for a lock in
	// a hash: see lua/queue/hand_over.lua.
	GrantMark string
	// Lost is called when a hold ends without a call that ended it, and handles that. If it is nil,
	// the program is notified of a loss.
	Lost   func(*Ownership)
	Recipe bool // other libraries implement it too, and publish nothing when they release it
	// RenewEach returns the renewals of a hold with several keys, key by key, to be sent one after
	// the other. The hold is renewed if all of them succeed. It is nil for kinds with one key.
	RenewEach func(o *Ownership, lease time.Duration) []script.Call
	// Channel is where its release is published, or nil for the channel of a lock.
	Channel func(key string) string
}

// passesInside reports whether its ownerships are also passed on in memory. Each hold of a fenced
// lock takes its token from the server.
func (s *Spec) passesInside() bool { return s.Passes && !s.Fenced }

// entryTokens is the token field of an owner's queue entry, with the kind of lock that the owner
// wants: see lua/queue/hand_over.lua.
func (s *Spec) entryTokens(timed bool) string {
	switch {
	case !s.Fenced:
		return "0" + s.GrantMark
	case timed:
		return "1t"
	}
	return "1"
}

// IsLock reports whether it is a kind of lock: its owners are neither permits nor parties.
func (s *Spec) IsLock() bool { return !s.Permit && !s.Party }

// IsShared reports whether several owners may hold the lock at once.
func (s *Spec) IsShared() bool { return s.Line == line.Shared }

// othersMayStay reports whether others may still hold the lock when its owner has released it:
// other readers, or the owner itself on the other side.
func (s *Spec) othersMayStay() bool { return s.Side != "" }

// ignoresOwnRelease reports whether a client need not handle the message of its own release,
// because the end of the hold wakes its waiters. A read/write lock has several holders, and the
// message may be of another one.
func (s *Spec) ignoresOwnRelease() bool { return s.IsLock() && s.Side == "" }

// lineRests reports whether the waiters in line send nothing while this client holds the lock.
func (s *Spec) lineRests() bool { return s.Line == line.Only || s.Passes }

// OtherSide returns the other side of a lock with two.
func (s *Spec) OtherSide() keyspace.Kind {
	if s.Side == keyspace.KindRead {
		return keyspace.KindWrite
	}
	return keyspace.KindRead
}
