package latchkey

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// doubt is what the server may know of an ownership otherwise than the client, because a
// command was sent whose outcome is unknown, or because the server has done what nobody
// wants any more. What is in doubt is undone: see [undoer] for how often and until when.
//
//	event                    becomes true   until                     undo makes it so that
//	-----------------------  -------------  ------------------------  --------------------------
//	an acquisition is not    acquisition    the ownership is over;    the server has the count
//	answered                                it can be executed late   that the client has: when
//	                                        while its lease would     the acquisition fails, or
//	                                        last                      with the last release
//
//	a grant is not wanted    unwanted       the ownership is over     nothing is held, at once
//
//	the server has it among  queued         it is granted             it does not wait any more,
//	those who wait                                                    when the acquisition fails
//
//	a renewal or an          renewal        one is answered           if the ownership is lost
//	extension is sent                                                 meanwhile: nothing is held
//
//	an extension is not      extension      the ownership is over     the same
//	answered
//
//	a release is not         release        the ownership is over     the server has the count
//	answered                                                          that the client has
//
//	the last release fails   unreleased     the ownership is over     nothing is held
//
//	the last release begins  stood          the ownership is over     -
//	within a certain lease
//
// Nothing here is taken back but queued and renewal: an ownership that begins although an
// acquisition of it is in doubt stays so.
type doubt struct {
	unwanted   bool // the grant came too late, to too few replicas, or to a client that closes
	queued     bool // in the queue of a fair lock, or among the writers
	renewal    bool // or an extension
	release    bool
	unreleased bool         // the last release has failed, and is repeated: see ownership.othersAsk
	stood      bool         // explains why the lock is gone when a release in doubt is repeated
	sent       *sentInDoubt // acquisitions and extensions, or nil
}

// sentInDoubt is when acquisitions were sent that are in doubt, and for how long extensions are.
type sentInDoubt struct {
	acquisition bool                 // there is one
	at          transport.Stamp      // before the last of them
	generation  transport.Generation // in which all of them were sent, or transport.NoGeneration
	extension   time.Duration        // the longest lease that an extension in doubt may have set
}

// acquisitionInDoubt takes note of an acquisition that may be executed, now or late.
func (d *doubt) acquisitionInDoubt(sent transport.Stamp, sentIn transport.Generation) {
	if d.acquisition() {
		sentIn = d.sent.generation.Common(sentIn)
	}
	d.sent = &sentInDoubt{true, sent, sentIn, d.extension()}
}

// acquisition reports whether an acquisition may be executed, now or late.
func (d *doubt) acquisition() bool { return d.sent != nil && d.sent.acquisition }

// extension is the longest lease that an extension in doubt may have set, or 0.
func (d *doubt) extension() time.Duration {
	if d.sent == nil {
		return 0
	}
	return d.sent.extension
}

// sentIn is the generation in which all acquisitions in doubt were sent, or transport.NoGeneration.
func (d *doubt) sentIn() transport.Generation {
	if !d.acquisition() {
		return transport.NoGeneration
	}
	return d.sent.generation
}

// lastReleaseFails takes note that the last release has failed, and reports whether it is for the
// first time.
func (d *doubt) lastReleaseFails() (first bool) {
	first, d.unreleased = !d.unreleased, true
	return first
}

// extensionInDoubt takes note of a lease that an extension may have set.
func (d *doubt) extensionInDoubt(lease time.Duration) {
	if d.sent == nil {
		d.sent = &sentInDoubt{generation: transport.NoGeneration}
	}
	d.sent.extension = max(d.sent.extension, lease)
}

// span is the longest time for which the key may live, if it is that without a doubt.
func (d *doubt) span(known time.Duration) time.Duration { return max(known, d.extension()) }

// mayComeLate reports whether an acquisition for such a lease may still be executed.
func (d *doubt) mayComeLate(now transport.Stamp, lease time.Duration) bool {
	return d.acquisition() && now.Since(d.sent.at) < lease
}

// mayLast reports whether something is under way that may give the key more time than is
// known here. span is the longest time for which it may live.
func (d *doubt) mayLast(now transport.Stamp, span time.Duration) bool {
	return d.renewal || d.release || d.extension() > 0 || d.mayComeLate(now, span)
}

// mayChange reports whether something is under way that may change the key, or has to be undone.
func (d *doubt) mayChange() bool {
	return d.unwanted || d.renewal || d.extension() > 0 || d.release
}

// mayWait reports whether the server may have the ownership among those who wait.
func (d *doubt) mayWait() bool { return d.queued || d.acquisition() }

// mayBeHeld reports whether the server may have granted an acquisition that has failed.
func (d *doubt) mayBeHeld() bool { return d.acquisition() || d.unwanted }

// explainsLoss reports whether an owner that is gone when the last release is sent is
// explained by an earlier one of ours: it began while the lease was certain to stand, and
// either it or the command that found the owner gone may have been executed before.
func (d *doubt) explainsLoss(repeated bool) bool { return d.stood && (d.release || repeated) }
