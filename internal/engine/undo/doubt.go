package undo

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/transport/nodes"
)

// Doubt records where the server's state may differ from the client's: the outcome of a command
// is unknown, or the server granted something that is no longer wanted. The client undoes what is
// in doubt: see [Undoer] for how often and until when.
//
//	event                    becomes true   until                     undo makes it so that
//	-----------------------  -------------  ------------------------  --------------------------
//	an acquisition is not    Acquisition    the ownership is over;    the server has the count
//	answered                                it can be executed late   that the client has: when
//	                                        while its lease would     the acquisition fails, or
//	                                        last                      with the last release
//
//	a grant is not wanted    Unwanted       the ownership is over     nothing is held, at once
//
//	a renewal or an          Renewal        one is answered           if the ownership is lost
//	extension is sent                                                 before that: nothing is held
//
//	an extension is not      extension      the ownership is over     the same
//	answered
//
//	a release is not         Release        the ownership is over     the server has the count
//	answered                                                          that the client has
//
//	the last release begins  ValidAtRelease the ownership is over     -
//	while the lease is certainly valid
//
// Only Renewal is ever reset: an ownership that begins while one of its acquisitions is in doubt
// stays in doubt.
type Doubt struct {
	Unwanted       bool // the grant came too late, to too few replicas, or to a client that closes
	Renewal        bool // or an extension
	Release        bool
	ValidAtRelease bool         // explains why the lock is gone when a release in doubt is repeated
	Stores         bool         // the last release stores something: nothing explains that the owner is gone
	Sent           *SentInDoubt // acquisitions and extensions, or nil
}

// SentInDoubt is when acquisitions in doubt were sent, and how long extensions in doubt may last.
type SentInDoubt struct {
	Acquisition bool             // there is one
	at          lease.Stamp      // before the last of them
	generation  nodes.Generation // in which all of them were sent, or nodes.NoGeneration
	extension   time.Duration    // the longest lease that an extension in doubt may have set
}

// AcquisitionInDoubt records an acquisition that may be executed, now or late.
func (d *Doubt) AcquisitionInDoubt(sent lease.Stamp, sentIn nodes.Generation) {
	if d.Acquisition() {
		sentIn = d.Sent.generation.Common(sentIn)
	}
	d.Sent = &SentInDoubt{true, sent, sentIn, d.extension()}
}

// Acquisition reports whether an acquisition may be executed, now or late.
func (d *Doubt) Acquisition() bool { return d.Sent != nil && d.Sent.Acquisition }

// extension is the longest lease that an extension in doubt may have set, or 0.
func (d *Doubt) extension() time.Duration {
	if d.Sent == nil {
		return 0
	}
	return d.Sent.extension
}

// SentIn is the generation in which all acquisitions in doubt were sent, or
// nodes.NoGeneration.
func (d *Doubt) SentIn() nodes.Generation {
	if !d.Acquisition() {
		return nodes.NoGeneration
	}
	return d.Sent.generation
}

// ExtensionInDoubt records a lease that an extension may have set.
func (d *Doubt) ExtensionInDoubt(lease time.Duration) {
	if d.Sent == nil {
		d.Sent = &SentInDoubt{generation: nodes.NoGeneration}
	}
	d.Sent.extension = max(d.Sent.extension, lease)
}

// Span is how long the key may live at most, given how long it certainly may.
func (d *Doubt) Span(known time.Duration) time.Duration { return max(known, d.extension()) }

// MayComeLate reports whether an acquisition may still be executed. known is as for Span.
func (d *Doubt) MayComeLate(now lease.Stamp, known time.Duration) bool {
	return d.Acquisition() && now.Since(d.Sent.at) < d.Span(known)
}

// MayLast reports whether a command in flight may give the key more time than the client knows
// of. known is as for Span.
func (d *Doubt) MayLast(now lease.Stamp, known time.Duration) bool {
	return d.Renewal || d.Release || d.extension() > 0 || d.MayComeLate(now, known)
}

// MayChange reports whether a command in flight may change the key, or a change has to be undone.
func (d *Doubt) MayChange() bool {
	return d.Unwanted || d.Renewal || d.extension() > 0 || d.Release
}

// MayBeHeld reports whether the server may have granted a failed acquisition.
func (d *Doubt) MayBeHeld() bool { return d.Acquisition() || d.Unwanted }

// ExplainsLoss reports whether an earlier release of ours explains that the owner is gone when
// the last release is sent. That is so if the earlier release began while the lease was certainly
// valid, and either it or the command that found the owner gone may have been executed before.
// If the release stores something, it finds that instead.
func (d *Doubt) ExplainsLoss(repeated bool) bool {
	return d.ValidAtRelease && !d.Stores && (d.Release || repeated)
}
