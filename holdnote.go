package latchkey

import "slices"

// Note attaches a text for people to a hold, such as "order 42". [Client.Inspect], the lists of the
// command line and [PermitSemaphore.Holders] show it as [Holder].Note while the hold lasts. Locks
// do not interpret it. The text must be printable and have at most MaxNoteLength bytes; otherwise
// the acquisition returns ErrInvalid.
//
// The client sends the note in the background, after the hold has begun and together with other
// notes, so the acquisition costs nothing more; others see the note some milliseconds later. If the
// server refuses it or cannot be reached, the note is missing and the hold is not affected. A note
// ends with its hold, and with the client.
//
// If an owner has several holds, by re-entry or because readers of its client share its hold, the
// latest note counts. In a lock of several members, each member has the note. A guest, which enters
// [By] the owner of another client, cannot have one: that is an ErrInvalid. So is a note of a
// client with [NoLabel].
func Note(text string) NoteOption { return setting{kind: settingNote, note: text} }

// holdNote is the note of one hold.
type holdNote struct{ text string }

// attachNotes attaches the note to the holds of an acquisition, which are held by then.
func (a *acquisition) attachNotes(h *Hold) {
	a.lock.client.record.attachNote(h.backend.(*holdState), a.note)
	for _, o := range a.others {
		a.lock.client.record.attachNote(&o.holds.first, a.note)
	}
}

// attachNote keeps the note of a hold on the server until the hold ends.
func (r *clientRecord) attachNote(s *holdState, text string) {
	o, n := s.ownership, &holdNote{text}
	_, field := o.owner().Record()
	r.addNote(field, n)
	o.mu.Lock()
	ended := !s.active()
	if !ended {
		s.addDependent(n, &dependent{end: func(error) { r.dropNote(field, n, o.live()) }})
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

// dropNote forgets a note. If its owner goes on without it, the server is updated at once;
// otherwise with the next write, because nobody shows the note of an owner that holds nothing.
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
	r.mark(field)
	if goesOn {
		r.start(r.client.clock().Mono)
	}
}

// note is the note to show for an owner. r.mu is held.
func (r *clientRecord) note(field string) string {
	if all := r.notes[field]; len(all) > 0 {
		return all[len(all)-1].text
	}
	return ""
}
