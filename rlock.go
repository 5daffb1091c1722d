package latchkey

// Lock is the re-entrant lock, on the wire Redisson's RLock. An acquisition under
// the context of a hold ([Hold.Context]), or by the same owner ([By], [WithOwner]),
// enters the hold again; the lock is free after as many releases.
//
// It promises no order among waiters of different processes. Waiters of one client
// are served first come, first served.
type Lock struct{ *primitive }

var _ Locker = (*Lock)(nil)

// NewLock returns the re-entrant lock of that name. Nothing is sent.
func (c *Client) NewLock(name string) *Lock {
	return &Lock{newPrimitive(c, lockSpec, name)}
}

var lockSpec = &spec{kind: KindLock, family: KindLock, stored: KindLock,
	protocol: hashProtocol{}, renew: renewScript, renewals: renewBatch, reentrant: true, passes: true, handsOver: true,
	resolve: resolveOwner, fresh: freshOwner}
