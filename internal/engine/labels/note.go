package labels

import (
	"slices"

	"github.com/latchkey-go/latchkey/internal/base/identity"
)

// note is the note of one hold.
type note struct{ text string }

// AddNote keeps the note of a hold of an owner on the server until drop is called. goesOn says
// whether the owner goes on without it.
func (r *Record) AddNote(owner identity.Owner, text string) (drop func(goesOn bool)) {
	n := &note{text}
	_, field := owner.Record()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.notes[field] = append(r.notes[field], n)
		r.changed[field] = struct{}{}
		r.start(r.config.Clock().Mono)
	}
	return func(goesOn bool) { r.dropNote(field, n, goesOn) }
}

// dropNote forgets a note. If its owner goes on without it, the server is updated at once;
// otherwise with the next write, because nobody shows the note of an owner that holds nothing.
func (r *Record) dropNote(field string, n *note, goesOn bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.shown(field)
	left := slices.DeleteFunc(r.notes[field], func(each *note) bool { return each == n })
	r.notes[field] = left
	if len(left) == 0 {
		delete(r.notes, field)
	}
	if r.shown(field) == before {
		return
	}
	r.mark(field)
	if goesOn {
		r.start(r.config.Clock().Mono)
	}
}

// shown is the note to show for an owner. r.mu is held.
func (r *Record) shown(field string) string {
	if all := r.notes[field]; len(all) > 0 {
		return all[len(all)-1].text
	}
	return ""
}
