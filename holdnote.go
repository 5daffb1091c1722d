package latchkey

import "slices"

// Note gives a hold a text for people, such as "order 42": [Client.Inspect], the lists of the command line
// and [PermitSemaphore.Holders] show it for as long as the hold stands, as [Holder].Note. It means nothing to
// any lock. text is printable and of MaxNoteLength bytes at most, else the acquisition is an ErrInvalid.
//
// The client tells the server in the background, after the hold has begun and together with other notes, so
// that the acquisition costs nothing more; others see the note some milliseconds later. If the server refuses
// or cannot be asked, the note is missing and the hold is not affected. A note ends with its hold, and with the client.
//
// Of an owner that has several holds, by re-entry or because others of its client read along, the note that came
// last counts. Of a lock of several each member has the note. A guest, who enters [By] the owner of another client,
// has none: that is an ErrInvalid. So is a note of a client with [NoLabel].
func Note(text string) NoteOption { return setting{kind: settingNote, note: text} }

// holdNote is the note of one hold.
type holdNote struct{ text string }

// noteHolds gives the holds of an acquisition their note. What it has acquired is held by then.
func (a *acquisition) noteHolds(h *Hold) {
	a.lock.client.record.noteHold(h.backend.(*holdState), a.note)
	for _, o := range a.others {
		a.lock.client.record.noteHold(&o.holds.first, a.note)
	}
}

// noteMembers gives the holds of members their note, or none for "".
func noteMembers(members []*Hold, text string) {
	for _, h := range members {
		if s, is := h.inner().(*holdState); is && text != "" {
			s.ownership.lock.client.record.noteHold(s, text)
		}
	}
}

// noteHold tells the server of the note of a hold, until that ends.
func (r *clientRecord) noteHold(s *holdState, text string) {
	o, n := s.ownership, &holdNote{text}
	_, field := recordOf(o.owner())
	r.addNote(field, n)
	o.mu.Lock()
	ended := !s.active()
	if !ended {
		s.keep(n, &ending{end: func(error) { r.dropNote(field, n, o.live()) }})
	}
	o.mu.Unlock()
	if ended {
		r.dropNote(field, n, false)
	}
}

func (r *clientRecord) addNote(field string, n *holdNote) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.notes[field] = append(r.notes[field], n)
		r.changed[field] = struct{}{}
		r.start(r.client.clock().Mono)
	}
}

// dropNote forgets a note. The server is told at once if its owner goes on without it, and otherwise together with
// something else: nobody shows the note of an owner that holds nothing.
func (r *clientRecord) dropNote(field string, n *holdNote, goesOn bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.note(field)
	left := slices.DeleteFunc(r.notes[field], func(each *holdNote) bool { return each == n })
	r.notes[field] = left
	if len(left) == 0 {
		delete(r.notes, field)
	}
	if r.note(field) == before {
		return
	}
	r.changed[field] = struct{}{}
	if goesOn {
		r.start(r.client.clock().Mono)
	}
}

// note is what is to be shown of an owner. r.mu is held.
func (r *clientRecord) note(field string) string {
	if all := r.notes[field]; len(all) > 0 {
		return all[len(all)-1].text
	}
	return ""
}
