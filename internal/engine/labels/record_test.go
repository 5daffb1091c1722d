package labels

import (
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"

	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// newTestRecord returns a record that is not written by itself.
func newTestRecord() *Record {
	r := NewRecord(Config{ClientID: identity.NewClientID(), Clock: lease.SystemClock, Label: "x"})
	r.writing = true
	return r
}

// While nothing is written, a note that has ended takes no memory, unless the server may have it.
func TestRecord_forgets_what_was_never_written(t *testing.T) {
	r := newTestRecord()
	for i := range uint64(10) {
		drop := r.AddNote(identity.New(r.config.ClientID, i), "note")
		drop(false)
	}
	assert.Empty(t, r.changed)
	assert.Empty(t, r.notes)
}

// The same is so for a note that the server refuses. If the server may have it, it is removed.
func TestRecord_after_a_failed_write(t *testing.T) {
	refused := outcome.Refusal(rueidis.ErrNoCache)
	for _, each := range []struct {
		name    string
		err     error
		changed int
	}{{"refused", refused, 0}, {"no answer", outcome.ErrSilent, 1}, {"written", nil, 1}} {
		for _, during := range []bool{false, true} {
			r := newTestRecord()
			drop := r.AddNote(identity.New(r.config.ClientID, 7), "note")
			w := r.next(true)
			assert.Equal(t, []string{"7", "note"}, w.texts)
			if during {
				drop(false)
			}
			r.sent(w, true, each.err)
			if !during {
				drop(false)
			}
			assert.Len(t, r.changed, each.changed, "%s, the hold ends during the write: %v", each.name, during)
			assert.Empty(t, r.notes)
			if each.changed > 0 {
				r.notBefore = longAgo
				assert.Equal(t, []string{"7"}, r.next(true).gone, each.name)
			}
		}
	}
}
