package ownership

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/engine/line"
)

// When a release hands a contended lock over while goroutines of this client wait for it, it puts
// the owner with which the client wants the lock next into the queue, in the same command.

// ChooseNext makes the owner with which this client wants the lock again, when it releases the lock
// and others are in line: the release puts that owner into the queue. SendMu is held.
func (o *Ownership) ChooseNext() {
	if !o.Spec.Passes || o.Client.Inbox.MustPoll(o.Names.Key, 0) { // the queue would not know when it polls
		return
	}
	first := o.Links.FirstInLine()
	if first == nil {
		return
	}
	next, is := first.Next(o).(*Ownership)
	if !is {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.Phase != Releasing { // nobody would take the owner
		return
	}
	next.Entry.ReleaseBegins()
	o.Turn.Next = next
}

// leaveOpen decides whether the release leaves the mutex to other libraries. SendMu is held.
func (s *Hold) leaveOpen() {
	o := s.Ownership
	if !o.Spec.Recipe {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	had := o.Client.Clock().Mono - o.Turn.Began(o.Client.Config.Turn)
	o.Turn.LeaveOpen(o.Links.OpenFor(time.Now().Add(-had)))
}

// placeOf returns the place of a next owner, or nil.
func placeOf(next *Ownership) line.Place {
	if next == nil {
		return nil
	}
	return next
}
