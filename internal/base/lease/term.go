package lease

import (
	"math/rand/v2"
	"time"
)

// Term is the time that the server has given an ownership, and how much of it can be relied
// on. It only calculates with stamps: it reads no clock, takes no lock and sends nothing. Every
// lease counts from before the command that set it was sent, so it ends here before it ends on the
// server.
type Term struct {
	Full      time.Duration // the lease that each renewal asks for, unless the limit is near
	Sent      Stamp         // before the command that set the lease was sent
	Granted   time.Duration // the lease that it set
	unrenewed time.Duration // from the last full lease until Sent; less than 0 if that lease was sent later
	Limit     *Bound        // of the ownership as a whole, or nil
	Wanted    *Bound        // the next renewal raises an otherwise unrenewed lease to it; or nil
}

// NewTerm returns the term of an acquisition that was sent at that time, and granted that
// lease.
func NewTerm(sent Stamp, granted, full, maxHold time.Duration) Term {
	return Term{Full: full, Sent: sent, Granted: granted, Limit: NewBound(maxHold, sent)}
}

// NewGranted returns the term of an owner that was made at that time, and later granted a short
// lease by the release of another client. The first renewal raises it to what the acquisition
// wanted, or, if it is renewed, to the full lease. That renewal is not sent at once, however much
// of the lease is over: a short hold does not need it.
func NewGranted(made, now Stamp, granted, wanted, full time.Duration, renewed bool) Term {
	l := NewTerm(made, granted, full, 0)
	due := max(granted/3-now.Since(made), granted/4)
	l.unrenewed = l.Period() - due - now.Since(made)
	if !renewed && wanted > granted {
		l.Wanted = NewBound(wanted, now)
	}
	return l
}

// left is the time left of the lease.
func (l *Term) left(now Stamp) time.Duration { return l.Granted - now.Since(l.Sent) }

// Valid is how long the hold can be relied on without a reply from the server.
func (l *Term) Valid(now Stamp) time.Duration {
	return min(l.left(now)-Margin(l.Granted), l.Limit.Valid(now))
}

// Fits reports whether the rest of the lease suits an acquisition that asks for the given lease. It
// must not be longer, so that a holder that crashes does not keep the lock for longer than it asked
// for. It must be most of that lease, or a good part of it if renewals follow.
func (l *Term) Fits(now Stamp, lease time.Duration, renewed bool) bool {
	least := lease * 9 / 10
	switch {
	case l.Granted < lease && (renewed || l.isToBecome(now, lease)):
		least = l.Granted / 2
	case renewed:
		least = lease / 2
	}
	return l.Limit == nil && max(l.left(now), l.wantedLease()) <= lease && l.Valid(now) > least
}

// isToBecome reports whether the next renewal raises the lease to the given one, and most of that
// is left.
func (l *Term) isToBecome(now Stamp, lease time.Duration) bool {
	return l.wantedLease() == lease && l.Wanted.Left(now) > lease*9/10
}

// Span is the longest time for which the key may live, as far as is known.
func (l *Term) Span() time.Duration { return max(l.Full, l.Granted) }

// wantedLease is the lease to which the next renewal raises this one, or 0.
func (l *Term) wantedLease() time.Duration {
	if l.Wanted == nil {
		return 0
	}
	return l.Wanted.D
}

// Extend moves the end of the lease, never to an earlier time.
func (l *Term) Extend(sent Stamp, lease time.Duration) {
	if sent.Since(l.Sent)+lease > l.Granted {
		l.Set(sent, lease)
	}
	if lease >= l.Full { // a shorter one is no reason to renew later
		l.unrenewed = -sent.Since(l.Sent)
	}
}

// Shorten moves the end of the lease, never to a later time.
func (l *Term) Shorten(sent Stamp, lease time.Duration) {
	if l.left(sent) > lease {
		l.Set(sent, lease)
	}
}

// EndIn makes the lease end with the object that it belongs to. It plans a renewal for when a third
// of that time is over, which finds out whether the object lives longer by then; in the last
// moments none.
func (l *Term) EndIn(sent Stamp, left time.Duration) {
	if l.left(sent) <= left {
		return
	}
	l.Set(sent, left)
	l.unrenewed = l.Period() - max(left/3, leastEndPause)
}

// leastEndPause is the shortest time between two renewals of a lease that ends with its object.
const leastEndPause = 100 * time.Millisecond

// Set replaces the lease, whichever of the two ends first.
func (l *Term) Set(sent Stamp, lease time.Duration) {
	l.unrenewed += sent.Since(l.Sent)
	l.Sent, l.Granted = sent, lease
}

// AtLimit reports whether the key already ends at the limit, so that a renewal could add
// nothing.
func (l *Term) AtLimit() bool { return l.Granted >= l.Limit.Left(l.Sent) }

// Next is the lease for a renewal that is about to be sent. It never extends past the limit.
func (l *Term) Next(now Stamp) time.Duration {
	if l.Wanted != nil {
		return l.Wanted.Left(now)
	}
	return min(l.Full, l.Limit.Left(now))
}

// Settled notes a lease that was set. A lease shorter than the wanted one changes nothing.
func (l *Term) Settled(sent Stamp, lease time.Duration) {
	if l.Wanted != nil && lease >= l.Wanted.Left(sent) {
		l.Wanted = nil
	}
}

// ReleaseLease is the lease to which a partial release raises the remaining time of the key, or 0
// if there is a limit.
func (l *Term) ReleaseLease() time.Duration {
	if l.Limit != nil {
		return 0
	}
	return l.Full
}

// Period is the time between two renewals: a third of the lease, so that two more fit in if
// one fails.
func (l *Term) Period() time.Duration { return l.Full / 3 }

// UntilRenewal is the time until the next renewal is due: a period, less a small random part so
// that clients spread.
func (l *Term) UntilRenewal(now Stamp) time.Duration {
	return l.Period() - rand.N(min(l.Period(), l.Granted/3)/16+1) - (l.unrenewed + now.Since(l.Sent))
}

// atStake is the lease to be kept: that of a grant may be much shorter than a full one.
func (l *Term) atStake() time.Duration { return min(l.Full, l.Granted) }

// RetryPause is roughly how long to wait after a renewal has failed.
func (l *Term) RetryPause() time.Duration {
	return min(max(l.atStake()/20, 5*time.Millisecond), time.Second)
}

// Patience is how long one command may delay the next renewal.
func (l *Term) Patience() time.Duration { return l.atStake() / 6 }

// RenewalPatience is how long a renewal that is sent now waits for its answer. If there is no time
// for another one that waits as long, it waits until the lease is over: if the server is slow, the
// other would get no answer either.
func (l *Term) RenewalPatience(now Stamp) time.Duration {
	usual, left := l.Patience(), l.Valid(now)
	if left < 2*usual+l.RetryPause() {
		return max(usual, left)
	}
	return usual
}
