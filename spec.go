package latchkey

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// spec is what tells one lock from another; everything else they share.
type spec struct {
	kind      Kind
	family    Kind // locks of one family may enter each other's holds
	stored    Kind // what the key alone shows
	protocol  protocol
	renew     transport.Command // the script of the protocol's renewals
	reentrant bool
	fenced    bool
	side      Kind // of a lock with two sides, or ""
	line      line // in which its waiters stand
	shared    bool // several owners may have it
	joint     bool // others may hold it when its owner has released it
	renewals  int  // how many of its holds one script renews
	passes    bool // its ownerships are passed on inside a client, and from client to client
	public    bool // its owners are known to all, so that none is passed on inside a client
	along     bool // several goroutines of a client may have an ownership of it at a time
	handsOver bool // its release may grant it to an owner that waits
	// lost is called when a hold is over that its call has not ended, and the call sees to the rest;
	// or nil, and then it is a loss of which the program is told.
	lost func(*ownership)
	// inUse reports whether what a grant has given an owner is in use here, of owners that are not numbers of this
	// client; or nil.
	inUse  func(r *registry, key, owner string) bool
	recipe bool // other libraries have it too, which publish nothing when they release it

	// resolve finds the ownership that an acquisition is for, which others may know; nil
	// stands for a fresh owner.
	resolve func(context.Context, *acquisition) (*ownership, error)
	// fresh makes the ownership of a fresh owner, and others that begin together with it.
	fresh func(*acquisition) (o *ownership, others []*ownership)
	// wait attempts until it acquires. It is nil for the kinds whose acquisitions stand in
	// one line for each key.
	wait func(context.Context, *acquisition) error
	// channel is on which its release is published, or nil: that of a lock.
	channel func(key string) string
	// ceiling is how often the front of the line asks at least, or nil: the poll ceiling.
	ceiling func(*Client) time.Duration
}

// entryTokens is what the entry of an owner in the queue says of tokens if it wants none, with the kind of
// lock that it wants: see grant.lua.
func (s *spec) entryTokens() string {
	switch {
	case s.stored == KindMutex:
		return "0s"
	case s.side == KindWrite:
		return "0w"
	}
	return "0"
}

// lineRests reports whether nobody in line asks the server while this client holds the lock.
func (s *spec) lineRests() bool { return s.line == onlyLine || s.passes }
