package latchkey

import "github.com/latchkey-go/latchkey/internal/transport"

// The queue of a lock is a separate key, and not every command can use it: while their slot migrates, the two
// keys may be on two nodes, and the user may lack the permission for the queue. The lock is still acquired and
// released then, by commands without the queue that work as they do for other libraries: a release publishes on
// the channel of the lock, and the front listens there.

// released returns the keys of a release: all, or only those without the hand-over.
func (k *keys) released(all []string) []string {
	if k.noQueue.Load() {
		return k.alone()
	}
	return all
}

// noteKeysOmitted records that a command was sent without the queue. If the user lacks the permission, later
// commands do not try the queue.
func (p *primitive) noteKeysOmitted(ans transport.Answer, err error) {
	if err == nil && transport.HasCode(ans.KeysOmitted, "NOPERM") {
		p.keys().noQueue.Store(true)
	}
}
