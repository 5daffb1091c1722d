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
	// maxUselessPauses is how many times in a row a client waits for strangers that take nothing.
	// It then stops waiting for them for unclaimedFor: they may want more permits than there are.
	maxUselessPauses = 3
	unclaimedFor     = 50 * time.Millisecond
)

// permitShare is what a wait queue knows of its client's share of permits if there are strangers.
// shard.mu guards it.
type permitShare struct {
	strangers int // that are taken into account
	// credit of this client grows by 1 with each release by others. Each acquisition costs as much
	// as the number of others that share the permits.
	credit         int
	echoes         int       // of this client, whose messages have not come back yet
	paused         bool      // the front lets strangers go first
	uselessPauses  int       // pauses in a row after which the permits were still there
	unclaimedUntil time.Time // until then the front does not wait for strangers
}

// others returns how many share the permits with this client. shard.mu is held.
func (q *waitQueue) others() int { return max(q.permits.clients-1, 0) + q.permits.strangers }

// expectStrangers notes how many strangers want permits, and how long to take them into account.
// shard.mu is held.
func (q *waitQueue) expectStrangers(strangers int, d time.Duration) {
	if !q.strangersKnown() {
		q.permits.permitShare = permitShare{echoes: q.permits.echoes}
	}
	q.permits.strangers, q.strangers.until = strangers, time.Now().Add(d)
}

// expectUnseen notes that a client that cannot be seen took permits. shard.mu is held.
func (q *waitQueue) expectUnseen() {
	if !q.strangersKnown() {
		q.expectStrangers(1, unseenLinger)
	}
}

// creditRelease notes the message of a release. shard.mu is held.
func (q *waitQueue) creditRelease() {
	if q.permits.echoes > 0 {
		q.permits.echoes--
		return
	}
	q.permits.credit, q.permits.uselessPauses = min(q.permits.credit+1, mostCredit*q.others()), 0
}

// chargeFor notes that this client acquired permits that many times. shard.mu is held.
func (q *waitQueue) chargeFor(acquisitions int) {
	q.permits.credit = max(q.permits.credit-acquisitions*q.others(), -mostCredit*q.others())
}

// chargeGrant notes that the server has granted this client permits. shard.mu is held.
func (q *waitQueue) chargeGrant() {
	q.chargeFor(1)
	if q.permits.paused {
		q.permits.uselessPauses++
	}
	if q.permits.uselessPauses >= maxUselessPauses {
		q.permits.uselessPauses, q.permits.unclaimedUntil = 0, time.Now().Add(unclaimedFor)
	}
	if q.strangersKnown() {
		q.letStrangersTake()
	}
}

// letStrangersTake delays the front if this client has had more than its share. shard.mu is held.
func (q *waitQueue) letStrangersTake() {
	now := time.Now()
	pause := q.pauseForStrangers(now)
	q.permits.paused, q.permits.othersUntil = pause > 0, now.Add(pause)
}

// pauseForStrangers returns how long strangers have to take the free permits. They have longer if
// they were too slow before. shard.mu is held.
func (q *waitQueue) pauseForStrangers(now time.Time) time.Duration {
	switch {
	case q.permits.credit >= 0, q.permits.alone, now.Before(q.permits.unclaimedUntil):
		return 0
	case q.permits.credit >= -slowDebt*q.others():
		return strangerPause
	}
	return longestStrangerPause
}

// mayPassBesideStrangers reports whether permits that are passed on belong to this client's share,
// regardless of turns. shard.mu is held.
func (q *waitQueue) mayPassBesideStrangers() bool {
	return q.permits.turnLength > 0 && q.permits.credit >= q.others()
}
