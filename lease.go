package latchkey

import (
	"math/rand/v2"
	"time"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// leaseTerm is the time that the server has given an ownership, and how much of it can be relied
// on. It only calculates with stamps: it reads no clock, takes no lock and sends nothing. Every
// lease counts from before the command that set it was sent, so it ends here before it ends on the
// server.
type leaseTerm struct {
	full      time.Duration   // the lease that each renewal asks for, unless the limit is near
	sent      transport.Stamp // before the command that set the lease was sent
	granted   time.Duration   // the lease that it set
	unrenewed time.Duration   // from the last full lease until sent; less than 0 if that lease was sent later
	limit     *timeBound      // of the ownership as a whole, or nil
	wanted    *timeBound      // the next renewal raises an otherwise unrenewed lease to it; or nil
}

// newLeaseTerm returns the term of an acquisition that was sent at that time, and granted that
// lease.
func newLeaseTerm(sent transport.Stamp, granted, full, maxHold time.Duration) leaseTerm {
	return leaseTerm{full: full, sent: sent, granted: granted, limit: newTimeBound(maxHold, sent)}
}

// newGrantedTerm returns the term of an owner that was made at that time, and later granted a short
// lease by the release of another client. The first renewal raises it to what the acquisition asked
// for. That renewal is not sent at once, however much of the lease is over: a short hold does not
// need it.
func newGrantedTerm(made, now transport.Stamp, granted time.Duration, r *request) leaseTerm {
	l := newLeaseTerm(made, granted, r.renewLease, 0)
	due := max(granted/3-now.Since(made), granted/4)
	l.unrenewed = l.period() - due - now.Since(made)
	if !r.renew && r.lease > granted {
		l.wanted = newTimeBound(r.lease, now)
	}
	return l
}

// left is the time left of the lease.
func (l *leaseTerm) left(now transport.Stamp) time.Duration { return l.granted - now.Since(l.sent) }

// valid is how long the hold can be relied on without a reply from the server.
func (l *leaseTerm) valid(now transport.Stamp) time.Duration {
	return min(l.left(now)-driftMargin(l.granted), l.limit.valid(now))
}

// fits reports whether the rest of the lease suits an acquisition that asks for the given lease. It
// must not be longer, so that a holder that crashes does not keep the lock for longer than it asked
// for. It must be most of that lease, or a good part of it if renewals follow.
func (l *leaseTerm) fits(now transport.Stamp, lease time.Duration, renewed bool) bool {
	least := lease * 9 / 10
	switch {
	case l.granted < lease && (renewed || l.isToBecome(now, lease)):
		least = l.granted / 2
	case renewed:
		least = lease / 2
	}
	return l.limit == nil && max(l.left(now), l.wantedLease()) <= lease && l.valid(now) > least
}

// isToBecome reports whether the next renewal raises the lease to the given one, and most of that
// is left.
func (l *leaseTerm) isToBecome(now transport.Stamp, lease time.Duration) bool {
	return l.wantedLease() == lease && l.wanted.left(now) > lease*9/10
}

// span is the longest time for which the key may live, as far as is known.
func (l *leaseTerm) span() time.Duration { return max(l.full, l.granted) }

// wantedLease is the lease to which the next renewal raises this one, or 0.
func (l *leaseTerm) wantedLease() time.Duration {
	if l.wanted == nil {
		return 0
	}
	return l.wanted.d
}

// extend moves the end of the lease, never to an earlier time.
func (l *leaseTerm) extend(sent transport.Stamp, lease time.Duration) {
	if sent.Since(l.sent)+lease > l.granted {
		l.set(sent, lease)
	}
	if lease >= l.full { // a shorter one is no reason to renew later
		l.unrenewed = -sent.Since(l.sent)
	}
}

// shorten moves the end of the lease, never to a later time.
func (l *leaseTerm) shorten(sent transport.Stamp, lease time.Duration) {
	if l.left(sent) > lease {
		l.set(sent, lease)
	}
}

// endIn makes the lease end with the object that it belongs to. It plans a renewal for when a third of that time is over,
// which finds out whether the object lives longer by then; in the last moments none.
func (l *leaseTerm) endIn(sent transport.Stamp, left time.Duration) {
	if l.left(sent) <= left {
		return
	}
	l.set(sent, left)
	l.unrenewed = l.period() - max(left/3, leastEndPause)
}

// leastEndPause is the shortest time between two renewals of a lease that ends with its object.
const leastEndPause = 100 * time.Millisecond

// set replaces the lease, whichever of the two ends first.
func (l *leaseTerm) set(sent transport.Stamp, lease time.Duration) {
	l.unrenewed += sent.Since(l.sent)
	l.sent, l.granted = sent, lease
}

// atLimit reports whether the key already ends at the limit, so that a renewal could add
// nothing.
func (l *leaseTerm) atLimit() bool { return l.granted >= l.limit.left(l.sent) }

// next is the lease for a renewal that is about to be sent. It never extends past the limit.
func (l *leaseTerm) next(now transport.Stamp) time.Duration {
	if l.wanted != nil {
		return l.wanted.left(now)
	}
	return min(l.full, l.limit.left(now))
}

// noteLease notes a lease that was set. A lease shorter than the wanted one changes nothing.
func (l *leaseTerm) noteLease(sent transport.Stamp, lease time.Duration) {
	if l.wanted != nil && lease >= l.wanted.left(sent) {
		l.wanted = nil
	}
}

// releaseLease is the lease to which a partial release raises the remaining time of the key, or 0
// if there is a limit.
func (l *leaseTerm) releaseLease() time.Duration {
	if l.limit != nil {
		return 0
	}
	return l.full
}

// period is the time between two renewals: a third of the lease, so that two more fit in if
// one fails.
func (l *leaseTerm) period() time.Duration { return l.full / 3 }

// untilRenewal is the time until the next renewal is due: a period, less a small random part so
// that clients spread.
func (l *leaseTerm) untilRenewal(now transport.Stamp) time.Duration {
	return l.period() - rand.N(min(l.period(), l.granted/3)/16+1) - (l.unrenewed + now.Since(l.sent))
}

// atStake is the lease to be kept: that of a grant may be much shorter than a full one.
func (l *leaseTerm) atStake() time.Duration { return min(l.full, l.granted) }

// retryPause is roughly how long to wait after a renewal has failed.
func (l *leaseTerm) retryPause() time.Duration {
	return min(max(l.atStake()/20, 5*time.Millisecond), time.Second)
}

// patience is how long one command may delay the next renewal.
func (l *leaseTerm) patience() time.Duration { return l.atStake() / 6 }
