package latchkey

import "github.com/latchkey-go/latchkey/internal/transport"

// The queue of a lock is a key beside it, with which not every command can be sent: while their
// slot migrates, they may be on two nodes, and the user may have no right to the queue. A lock is
// acquired and released all the same, by commands without the queue, which go the way that goes
// for strangers: a release tells the channel of the lock, and the front listens there.

// released are the keys of a release: all, or without those of the hand-over.
func (k *keys) released(all []string) []string {
	if k.noQueue.Load() {
		return k.alone()
	}
	return all
}

// noteSpared takes note of a command that was sent without the queue. A right that the user does
// not have is not asked for again.
func (p *primitive) noteSpared(ans transport.Answer, err error) {
	if err == nil && transport.HasCode(ans.Spared, "NOPERM") {
		p.keys().noQueue.Store(true)
	}
}
