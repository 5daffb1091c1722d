// Package labels has what a client tells people on the server, in a record of its own: its label,
// and the notes of its holds. It also reads the records of other clients.
package labels

import (
	"context"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
	"github.com/latchkey-go/latchkey/internal/transport/retry"
)

const (
	// refresh is how often a client writes its record while it is in use.
	refresh = time.Minute
	// life is how long the record outlives the leases of the client.
	life = 2 * refresh
	// longestLease limits the leases that count, so that the record of a dead client goes in the
	// end.
	longestLease = 24 * time.Hour
	// pause is the pause between two writes, so that several notes share one.
	pause = 20 * time.Millisecond
	// retryPause is the pause after a failed write.
	retryPause = 10 * time.Second
	// patience is the time limit of one write or one read.
	patience = time.Second
	// mostNotes is the maximum number of notes of a client in one write or one read.
	mostNotes = 500
)

// Config is what the record of a client, and the labels of others, need of the client.
type Config struct {
	ClientID string
	Label    string // of the client, or "" if it publishes no label and shows none
	Sender   *transport.Sender
	Cluster  bool
	Clock    func() lease.Stamp
	Refused  func(error)                 // reports that the server refuses the record
	Begin    func(context.Context) error // begins a query for the program, unless the client is closed
	Done     func()                      // ends that query
}

// Record is the record of a client on the server, for people to read: its label, and the notes of
// its holds (lua/look/label_write.lua). It is written in the background while the client holds or
// waits for something, expires after its last lease, and is removed by Close. No lock depends on
// it: if a write fails, the information is missing for a while.
type Record struct {
	config Config

	id    string          // as in the key of the record
	open  context.Context // until Close
	end   context.CancelFunc
	tasks sync.WaitGroup

	mu        sync.Mutex
	writing   bool
	closed    bool
	written   bool                // the record may exist
	refreshAt time.Duration       // when to write it again so that it lasts
	until     time.Duration       // when it expires, as far as the client knows
	wanted    time.Duration       // when it should expire
	notBefore time.Duration       // no write before that, after a failure
	kept      time.Duration       // until when a lock that the client has released stays taken
	notes     map[string][]*note  // of live holds, by the field of their owner
	changed   map[string]struct{} // fields to write
	stored    map[string]struct{} // fields that the server may have
	sending   map[string]struct{} // fields that the write under way sets
}

// longAgo is a time that has passed, on a clock with any starting point.
const longAgo = math.MinInt64 / 2

// NewRecord makes the record of a client, which is written when the client first uses it.
func NewRecord(c Config) *Record {
	r := &Record{config: c, id: identity.RecordOfClient(c.ClientID), closed: c.Label == "",
		refreshAt: longAgo, until: longAgo, wanted: longAgo, notBefore: longAgo, kept: longAgo,
		notes: map[string][]*note{}, changed: map[string]struct{}{}, stored: map[string]struct{}{},
		sending: map[string]struct{}{}}
	r.open, r.end = context.WithCancel(context.Background())
	return r
}

// Use makes the record outlive a lease that begins now: the client holds, or waits for, something.
func (r *Record) Use(now, lease time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	end := now + min(lease, longestLease)
	r.wanted = max(r.wanted, end+life)
	if now >= r.refreshAt || end > r.until {
		r.start(now)
	}
}

// KeepUntil notes until when a lock stays taken after its release.
func (r *Record) KeepUntil(until time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = max(r.kept, until)
}

// start writes the record in the background, unless a write is under way. The caller holds r.mu.
func (r *Record) start(now time.Duration) {
	if r.writing || r.closed || now < r.notBefore {
		return
	}
	r.writing = true
	r.tasks.Go(r.write)
}

// TellChanges writes changes now that could otherwise wait.
func (r *Record) TellChanges() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.changed) > 0 {
		r.start(r.config.Clock().Mono)
	}
}

// write writes the record, and goes on while there is more to write.
func (r *Record) write() {
	for w := r.next(true); w != nil; w = r.next(false) {
		fresh, err := r.send(w)
		if r.sent(w, fresh, err); outcome.Classify(err) == outcome.Refused {
			r.config.Refused(err)
		}
		if retry.Rest(r.open, nil, pause) != nil {
			return
		}
	}
}

// write is the content of one command.
type write struct {
	at, life    time.Duration
	texts, gone []string // fields and their values to set; fields to remove
}

// next collects the next write, or returns nil if there is nothing to write.
func (r *Record) next(first bool) *write {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.config.Clock().Mono
	if !first && len(r.changed) == 0 && r.wanted-life <= r.until || now < r.notBefore || r.closed {
		r.writing = false
		return nil
	}
	w := &write{at: now, life: max(r.wanted-now, life)}
	for field := range r.changed {
		if len(w.texts)/2+len(w.gone) == mostNotes {
			break
		}
		delete(r.changed, field)
		if text := r.shown(field); text != "" {
			w.texts = append(w.texts, field, text)
			r.sending[field] = struct{}{}
		} else if _, stored := r.stored[field]; stored {
			w.gone = append(w.gone, field)
		}
	}
	return w
}

// send sends one write, once. It reports whether the record did not exist before.
func (r *Record) send(w *write) (fresh bool, err error) {
	args := append([]string{script.MillisText(w.life), r.config.Label, strconv.Itoa(len(w.gone))}, w.gone...)
	ctx, cancel := context.WithTimeout(r.open, patience)
	defer cancel()
	keys := []string{keyspace.RecordKey(r.id)}
	n, err := r.config.Sender.SendOnce(ctx, script.NewCall(script.LabelWrite, keys, append(args, w.texts...)...)).AsInt64()
	return n == 1, err
}

// NoteOf returns the note to show for an owner of this client, or "".
func (r *Record) NoteOf(owner identity.Owner) string {
	_, field := owner.Record()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.shown(field)
}

// sent records the outcome of a write.
func (r *Record) sent(w *write, fresh bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.written = true // even on an error: only the answer may be lost
	clear(r.sending)
	if err != nil {
		r.failed(w, err)
		return
	}
	r.until, r.refreshAt = w.at+w.life, w.at+refresh
	if fresh && len(r.stored) > 0 { // the server has lost it
		clear(r.stored)
		for field := range r.notes {
			r.changed[field] = struct{}{}
		}
	}
	for i := 0; i < len(w.texts); i += 2 {
		r.stored[w.texts[i]] = struct{}{}
	}
	for _, field := range w.gone {
		delete(r.stored, field)
	}
}

// failed schedules the same content for a later write. The caller holds r.mu.
func (r *Record) failed(w *write, err error) {
	if r.open.Err() != nil {
		return
	}
	rest, refused := retryPause, outcome.Classify(err) == outcome.Refused
	if refused {
		rest = refresh
	}
	r.notBefore = r.config.Clock().Mono + rest
	for i := 0; i < len(w.texts); i += 2 {
		if !refused {
			r.stored[w.texts[i]] = struct{}{} // only the answer may be lost
		}
		r.mark(w.texts[i])
	}
	for _, field := range w.gone {
		r.mark(field)
	}
}

// mark has a field written, unless there is no note and the server cannot have one. The caller
// holds r.mu.
func (r *Record) mark(field string) {
	_, stored := r.stored[field]
	_, sending := r.sending[field]
	if stored || sending || r.shown(field) != "" {
		r.changed[field] = struct{}{}
	} else {
		delete(r.changed, field)
	}
}

// Close stops the writing and removes the record. It lets the record expire instead if the server
// has not answered lately, or if a lock stays taken and the record names its former holder.
func (r *Record) Close(ctx context.Context, answers bool) {
	r.mu.Lock()
	r.closed = true
	r.end()
	r.mu.Unlock()
	r.tasks.Wait()
	r.mu.Lock()
	removes := answers && r.written && r.kept <= r.config.Clock().Mono
	r.mu.Unlock()
	if !removes {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_ = r.config.Sender.SendOnce(ctx, script.NewCall(script.LabelWrite, []string{keyspace.RecordKey(r.id)}, "0")).Error()
}
