package latchkey

// SpinLock is a re-entrant [Lock] that is waited for without messages, by asking
// again after growing pauses: Redisson's spin lock. It suits servers where pub/sub
// is not available or too expensive. Its releases wake the waiters of a Lock of
// the same name all the same.
type SpinLock struct{ *primitive }

var _ Locker = (*SpinLock)(nil)

// NewSpinLock returns the spin lock of that name. A back-off that does not grow from at least a millisecond
// makes every method fail with ErrInvalid. Nothing is sent.
func (c *Client) NewSpinLock(name string, backoff Backoff) *SpinLock {
	b := backoff.withDefaults()
	p := newPrimitive(c, spinKind(b), name)
	if p.invalid == nil {
		p.invalid = b.check()
	}
	return &SpinLock{p}
}
