package latchkey

import (
	"math/rand/v2"
	"time"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// leaseTerm is the time that the server has given an ownership, and what of it can be relied
// on. It is arithmetic on stamps: it reads no clock, takes no lock and asks nobody. Every
// lease counts from before the command that set it was sent, so that it is over here before
// it is over on the server.
type leaseTerm struct {
	full      time.Duration   // the lease that each renewal asks for, unless the limit is near
	sent      transport.Stamp // before the command that set the lease was sent
	granted   time.Duration   // the lease that it set
	unrenewed time.Duration   // for how long, when it was sent, no command had set a full lease; less than 0 if one has since
	bounds    *leaseBounds    // or nil
}

// leaseBounds is what few leases have.
type leaseBounds struct {
	limit *timeBound // of the ownership as a whole
	raise *timeBound // to which the next renewal raises a lease that is not renewed otherwise
}

// limit is that of the ownership as a whole, or nil.
func (l *leaseTerm) limit() *timeBound {
	if l.bounds == nil {
		return nil
	}
	return l.bounds.limit
}

// raise is to what the next renewal raises a lease that is not renewed otherwise, or nil.
func (l *leaseTerm) raise() *timeBound {
	if l.bounds == nil {
		return nil
	}
	return l.bounds.raise
}

// bind sets the limit.
func (l *leaseTerm) bind(limit *timeBound) {
	if limit != nil || l.bounds != nil {
		l.bounds = &leaseBounds{limit, l.raise()}
	}
}

// newLeaseTerm is the term of an acquisition that was sent then, and granted with a lease.
func newLeaseTerm(sent transport.Stamp, granted, full, maxHold time.Duration) leaseTerm {
	l := leaseTerm{full: full, sent: sent, granted: granted}
	l.bind(newTimeBound(maxHold, sent))
	return l
}

// newGrantedTerm is the term of an owner that was made then, and was granted a short lease later by
// the release of another client. The first renewal makes it what the acquisition has asked for. It is not
// sent at once, however much of the lease is over: a short hold does without it.
func newGrantedTerm(made, now transport.Stamp, granted time.Duration, r *request) leaseTerm {
	l := newLeaseTerm(made, granted, r.renewLease, 0)
	due := max(granted/3-now.Since(made), granted/4)
	l.unrenewed = l.period() - due - now.Since(made)
	if !r.renew && r.lease > granted {
		l.bounds = &leaseBounds{raise: newTimeBound(r.lease, now)}
	}
	return l
}

// left is what is left of the lease.
func (l *leaseTerm) left(now transport.Stamp) time.Duration { return l.granted - now.Since(l.sent) }

// valid is for how long the hold can be relied on, without asking anybody.
func (l *leaseTerm) valid(now transport.Stamp) time.Duration {
	return min(l.left(now)-driftMargin(l.granted), l.limit().valid(now))
}

// fits reports whether what is left of the lease does for an acquisition that asks for so much:
// not more, so that the lock of a holder that crashes is not held for longer than that, and most
// of it, or a good part if renewals follow.
func (l *leaseTerm) fits(now transport.Stamp, lease time.Duration, renewed bool) bool {
	least := lease * 9 / 10
	switch {
	case l.granted < lease && (renewed || l.isToBecome(now, lease)):
		least = l.granted / 2
	case renewed:
		least = lease / 2
	}
	return l.limit() == nil && max(l.left(now), l.wish()) <= lease && l.valid(now) > least
}

// isToBecome reports whether the lease is about to be raised to another, and most of that is left.
func (l *leaseTerm) isToBecome(now transport.Stamp, lease time.Duration) bool {
	return l.wish() == lease && l.raise().left(now) > lease*9/10
}

// span is the longest time for which the key may live, as far as is known.
func (l *leaseTerm) span() time.Duration { return max(l.full, l.granted) }

// wish is the lease to which the next renewal raises this one, or 0.
func (l *leaseTerm) wish() time.Duration {
	if l.raise() == nil {
		return 0
	}
	return l.raise().d
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

// set replaces the lease, whichever ends first.
func (l *leaseTerm) set(sent transport.Stamp, lease time.Duration) {
	l.unrenewed += sent.Since(l.sent)
	l.sent, l.granted = sent, lease
}

// atLimit reports whether the key already ends at the limit, so that a renewal could add
// nothing.
func (l *leaseTerm) atLimit() bool { return l.granted >= l.limit().left(l.sent) }

// next is the lease for a renewal that is about to be sent. It never passes the limit.
func (l *leaseTerm) next(now transport.Stamp) time.Duration {
	if l.raise() != nil {
		return l.raise().left(now)
	}
	return min(l.full, l.limit().left(now))
}

// noteRaised takes note of a lease that was set. A shorter one than is wanted does not end the wish.
func (l *leaseTerm) noteRaised(sent transport.Stamp, lease time.Duration) {
	if l.raise() != nil && lease >= l.raise().left(sent) {
		limit := l.limit()
		l.bounds = nil
		l.bind(limit)
	}
}

// raised is the lease to which a partial release raises what is left of the time of the key,
// or 0 if there is a limit.
func (l *leaseTerm) raised() time.Duration {
	if l.limit() != nil {
		return 0
	}
	return l.full
}

// period is the time between two renewals: a third of the lease, so that two more fit in if
// one fails.
func (l *leaseTerm) period() time.Duration { return l.full / 3 }

// untilRenewal is when the next renewal is due: after a period, a little less at random so
// that clients spread.
func (l *leaseTerm) untilRenewal(now transport.Stamp) time.Duration {
	return l.period() - rand.N(min(l.period(), l.granted/3)/16+1) - (l.unrenewed + now.Since(l.sent))
}

// atStake is the lease that is to be kept: that of a grant may be much shorter than a full one.
func (l *leaseTerm) atStake() time.Duration { return min(l.full, l.granted) }

// retryPause is how long to wait after a renewal that has failed, about.
func (l *leaseTerm) retryPause() time.Duration {
	return min(max(l.atStake()/20, 5*time.Millisecond), time.Second)
}

// patience is how long one command may keep the next renewal waiting.
func (l *leaseTerm) patience() time.Duration { return l.atStake() / 6 }
