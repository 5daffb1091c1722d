package latchkey

import "time"

// spec is what tells one lock from another; everything else they share.
type spec struct {
	kind      Kind
	family    Kind // locks of one family may enter each other's holds
	stored    Kind // what the key alone shows
	protocol  protocol
	renew     command // the script of the protocol's renewals
	reentrant bool
	fenced    bool
	side      Kind          // of a read/write lock, or ""
	shared    bool          // several may have it
	queued    bool          // waiters stand in a queue on the server
	poll      time.Duration // a shorter poll ceiling, or 0
	backoff   *Backoff      // instead of messages, or nil
}

var (
	// mutexSpec polls more often than the others: users of the same recipe in other
	// libraries publish nothing when they release.
	mutexSpec = &spec{kind: KindMutex, family: KindMutex, stored: KindMutex,
		protocol: stringProtocol{}, renew: renewScript, poll: 250 * time.Millisecond}
	lockSpec = &spec{kind: KindLock, family: KindLock, stored: KindLock,
		protocol: hashProtocol{}, renew: renewScript, reentrant: true}
	fencedSpec = &spec{kind: KindFenced, family: KindFenced, stored: KindLock,
		protocol: hashProtocol{}, renew: renewScript, reentrant: true, fenced: true}
)

// line is the side of the wait queue whose line its waiters form. The front of those who may
// share does not wait for a hold of this client to end.
func (k *spec) line() Kind {
	if k.shared {
		return KindWrite
	}
	return k.side
}

// alone reports whether a lock of this kind has one holder at a time.
func (k *spec) alone() bool { return k.side == "" && !k.shared }

// spinSpec waits by back-off, and otherwise is the re-entrant lock.
func spinSpec(b Backoff) *spec {
	k := *lockSpec
	k.kind, k.backoff = KindSpin, &b
	return &k
}

// Defaults of [Backoff].
const (
	DefaultBackoffInitial    = time.Millisecond
	DefaultBackoffMax        = 128 * time.Millisecond
	DefaultBackoffMultiplier = 2.0
)

// Backoff is how a spin lock spaces its attempts: the first pause is Initial, each
// further one is Multiplier times as long, up to Max, and every pause is cut short
// by up to half at random. Zero fields have the defaults, which are Redisson's;
// Multiplier 1 gives a constant pause.
type Backoff struct {
	Initial    time.Duration
	Max        time.Duration
	Multiplier float64
}

func (b Backoff) withDefaults() Backoff {
	setDefault(&b.Initial, DefaultBackoffInitial)
	setDefault(&b.Max, max(DefaultBackoffMax, b.Initial))
	setDefault(&b.Multiplier, DefaultBackoffMultiplier)
	return b
}

func (b Backoff) check() error {
	if b.Initial < time.Millisecond || b.Max < b.Initial || b.Multiplier < 1 || b.Multiplier > 100 {
		return invalid("the back-off from %v to %v by %v does not grow from at least 1ms", b.Initial, b.Max, b.Multiplier)
	}
	return nil
}

// pause is the rest after attempt number round, counted from 0.
func (b Backoff) pause(round int) time.Duration {
	pause := float64(b.Initial)
	for ; round > 0 && pause < float64(b.Max); round-- {
		pause *= b.Multiplier
		if b.Multiplier == 1 {
			break
		}
	}
	return jitter(time.Duration(min(pause, float64(b.Max))))
}
