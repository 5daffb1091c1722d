package latchkey

import "time"

// Strangers that want permits (see waitqueue_strangers.go) race for what is announced, and clients of
// this library are quicker. So a client that has had more than its share asks later. Its share is what it
// would have if all clients of this library and all processes of strangers took turns. All of them
// announce what they release, so that the share is known without a command.

// unclaimedFor is for how long strangers are not waited for that have not taken what was left to them:
// they may want more permits than there are.
const unclaimedFor = 50 * time.Millisecond

// permitShare is what a wait queue knows of the share of its client beside strangers. shard.mu guards it.
type permitShare struct {
	strangers int // that were told of the last release of this client
	// credit of this client grows by 1 with each release of anybody, and falls by the number of sharers
	// with each grant to this client.
	credit         int
	unclaimedUntil time.Time // strangers are not waited for until then
}

// sharers is how many share the permits. shard.mu is held.
func (q *waitQueue) sharers() int { return max(q.clients, 1) + q.strangers }

// reckonWith notes how many strangers want permits, and for how long they are reckoned with. shard.mu is
// held.
func (q *waitQueue) reckonWith(strangers int, d time.Duration) {
	now := time.Now()
	if !now.Before(q.strangersUntil) {
		q.credit = 0
	}
	q.strangers, q.strangersUntil = strangers, now.Add(d)
}

// shareReleased notes that somebody has released permits. shard.mu is held.
func (q *waitQueue) shareReleased() { q.credit = min(q.credit+1, 4*q.sharers()) }

// shareTaken notes that this client has got permits. shard.mu is held.
func (q *waitQueue) shareTaken() {
	lowest := -2 * q.sharers()
	if now := time.Now(); q.credit == lowest && now.After(q.unclaimedUntil) {
		q.unclaimedUntil = now.Add(unclaimedFor)
	}
	q.credit = max(q.credit-q.sharers(), lowest)
}

// mayPassBesideStrangers reports whether permits that are passed on are part of the share of this client, whatever
// turns there are. shard.mu is held.
func (q *waitQueue) mayPassBesideStrangers() bool { return q.lasts > 0 && q.credit >= q.sharers()-1 }

// pauseForStrangers is how long strangers have to take the permits that are announced. They have longer
// if they were too slow before. shard.mu is held.
func (q *waitQueue) pauseForStrangers() time.Duration {
	switch {
	case q.credit >= 0, time.Now().Before(q.unclaimedUntil):
		return 0
	case q.credit >= -q.sharers():
		return strangerPause
	}
	return longestStrangerPause
}
