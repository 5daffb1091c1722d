package latchkey

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// doubt records where the server's state may differ from the client's: the outcome of a command
// is unknown, or the server granted something that is no longer wanted. The client undoes what is
// in doubt: see [undo.Undoer] for how often and until when.
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
//	the waiters                                                       when the acquisition fails
//
//	a renewal or an          renewal        one is answered           if the ownership is lost
//	extension is sent                                                 before that: nothing is held
//
//	an extension is not      extension      the ownership is over     the same
//	answered
//
//	a release is not         release        the ownership is over     the server has the count
//	answered                                                          that the client has
//
//	the last release begins  validAtRelease the ownership is over     -
//	while the lease is certainly valid
//
// Only queued and renewal are ever reset: an ownership that begins while one of its acquisitions
// is in doubt stays in doubt.
type doubt struct {
	unwanted       bool // the grant came too late, to too few replicas, or to a client that closes
	queued         bool // in the queue of a fair lock, or among the waiting writers
	renewal        bool // or an extension
	release        bool
	validAtRelease bool         // explains why the lock is gone when a release in doubt is repeated
	sent           *sentInDoubt // acquisitions and extensions, or nil
}

// sentInDoubt is when acquisitions in doubt were sent, and how long extensions in doubt may last.
type sentInDoubt struct {
	acquisition bool                 // there is one
	at          lease.Stamp          // before the last of them
	generation  transport.Generation // in which all of them were sent, or transport.NoGeneration
	extension   time.Duration        // the longest lease that an extension in doubt may have set
}

// acquisitionInDoubt records an acquisition that may be executed, now or late.
func (d *doubt) acquisitionInDoubt(sent lease.Stamp, sentIn transport.Generation) {
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

// sentIn is the generation in which all acquisitions in doubt were sent, or
// transport.NoGeneration.
func (d *doubt) sentIn() transport.Generation {
	if !d.acquisition() {
		return transport.NoGeneration
	}
	return d.sent.generation
}

// extensionInDoubt records a lease that an extension may have set.
func (d *doubt) extensionInDoubt(lease time.Duration) {
	if d.sent == nil {
		d.sent = &sentInDoubt{generation: transport.NoGeneration}
	}
	d.sent.extension = max(d.sent.extension, lease)
}

// span is how long the key may live at most, given how long it certainly may.
func (d *doubt) span(known time.Duration) time.Duration { return max(known, d.extension()) }

// mayComeLate reports whether an acquisition with that lease may still be executed.
func (d *doubt) mayComeLate(now lease.Stamp, lease time.Duration) bool {
	return d.acquisition() && now.Since(d.sent.at) < lease
}

// mayLast reports whether a command in flight may give the key more time than the client knows
// of. span is how long the key may live at most.
func (d *doubt) mayLast(now lease.Stamp, span time.Duration) bool {
	return d.renewal || d.release || d.extension() > 0 || d.mayComeLate(now, span)
}

// mayChange reports whether a command in flight may change the key, or a change has to be undone.
func (d *doubt) mayChange() bool {
	return d.unwanted || d.renewal || d.extension() > 0 || d.release
}

// mayWait reports whether the server may have the ownership among the waiters.
func (d *doubt) mayWait() bool { return d.queued || d.acquisition() }

// mayBeHeld reports whether the server may have granted a failed acquisition.
func (d *doubt) mayBeHeld() bool { return d.acquisition() || d.unwanted }

// explainsLoss reports whether an earlier release of ours explains that the owner is gone when
// the last release is sent. That is so if the earlier release began while the lease was certainly
// valid, and either it or the command that found the owner gone may have been executed before.
func (d *doubt) explainsLoss(repeated bool) bool { return d.validAtRelease && (d.release || repeated) }
