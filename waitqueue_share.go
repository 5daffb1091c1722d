package latchkey

import "time"

// Strangers that want permits (see waitqueue_strangers.go) race for announced permits, and clients
// of this library are faster. So a client that has had more than its share tries later. Its
// share is what it would get if all clients of this library and all processes of strangers took
// turns. All of them announce their releases, so the share is known without a command.

const (
	// mostCredit is the number of acquisitions for which a client can have credit or debt.
	mostCredit = 8
	// slowDebt is the debt, in acquisitions, beyond which strangers are taken to be slow.
	slowDebt = 2
	// vainPauses is how many times in a row a client waits for strangers that take nothing. It then
	// stops waiting for them for unclaimedFor: they may want more permits than there are.
	vainPauses   = 3
	unclaimedFor = 50 * time.Millisecond
)

// permitShare is what a wait queue knows of its client's share of permits if there are strangers.
// shard.mu guards it.
type permitShare struct {
	strangers int // that are taken into account
	// credit of this client grows by 1 with each release by others. Each acquisition costs as much
	// as the number of others that share the permits.
	credit         int
	ownReleases    int       // of this client, whose messages have not come back yet
	paused         bool      // the front lets strangers go first
	inVain         int       // pauses in a row after which the permits were still there
	unclaimedUntil time.Time // until then the front does not wait for strangers
}

// others returns how many share the permits with this client. shard.mu is held.
func (q *waitQueue) others() int { return max(q.clients-1, 0) + q.strangers }

// reckonWith notes how many strangers want permits, and how long to take them into account.
// shard.mu is held.
func (q *waitQueue) reckonWith(strangers int, d time.Duration) {
	if !q.strangersKnown() {
		q.permitShare = permitShare{ownReleases: q.ownReleases}
	}
	q.strangers, q.strangersUntil = strangers, time.Now().Add(d)
}

// reckonWithUnseen notes that a client that cannot be seen took permits. shard.mu is held.
func (q *waitQueue) reckonWithUnseen() {
	if !q.strangersKnown() {
		q.reckonWith(1, unseenLinger)
	}
}

// creditRelease notes the message of a release. shard.mu is held.
func (q *waitQueue) creditRelease() {
	if q.ownReleases > 0 {
		q.ownReleases--
		return
	}
	q.credit, q.inVain = min(q.credit+1, mostCredit*q.others()), 0
}

// chargeFor notes that this client acquired permits that many times. shard.mu is held.
func (q *waitQueue) chargeFor(acquisitions int) {
	q.credit = max(q.credit-acquisitions*q.others(), -mostCredit*q.others())
}

// chargeGrant notes that the server has granted this client permits. shard.mu is held.
func (q *waitQueue) chargeGrant() {
	q.chargeFor(1)
	if q.paused {
		q.inVain++
	}
	if q.inVain >= vainPauses {
		q.inVain, q.unclaimedUntil = 0, time.Now().Add(unclaimedFor)
	}
	if q.strangersKnown() {
		q.letStrangersTake()
	}
}

// letStrangersTake delays the front if this client has had more than its share. shard.mu is held.
func (q *waitQueue) letStrangersTake() {
	now := time.Now()
	pause := q.pauseForStrangers(now)
	q.paused, q.othersUntil = pause > 0, now.Add(pause)
}

// pauseForStrangers returns how long strangers have to take the free permits. They have longer if
// they were too slow before. shard.mu is held.
func (q *waitQueue) pauseForStrangers(now time.Time) time.Duration {
	switch {
	case q.credit >= 0, q.alone, now.Before(q.unclaimedUntil):
		return 0
	case q.credit >= -slowDebt*q.others():
		return strangerPause
	}
	return longestStrangerPause
}

// mayPassBesideStrangers reports whether permits that are passed on belong to this client's share,
// regardless of turns. shard.mu is held.
func (q *waitQueue) mayPassBesideStrangers() bool { return q.lasts > 0 && q.credit >= q.others() }
