package latchkey

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
)

const (
	// recordRefresh is how often a client writes its record while it is in use.
	recordRefresh = time.Minute
	// recordLife is how long the record outlives the leases of the client.
	recordLife = 2 * recordRefresh
	// longestRecord limits the leases that count, so that the record of a dead client goes in the end.
	longestRecord = 24 * time.Hour
	// recordPause is the pause between two writes, so that several notes share one.
	recordPause = 20 * time.Millisecond
	// recordRetry is the pause after a failed write.
	recordRetry = 10 * time.Second
	// recordPatience is the time limit of one write or one read.
	recordPatience = time.Second
	// recordFields is the maximum number of notes in one write.
	recordFields = 500
)

// labelConfig is what the record of a client, and the labels of others, need of the client.
type labelConfig struct {
	client  string // its id
	label   string // or "" if it publishes no label and shows none
	sender  *transport.Sender
	cluster bool
	clock   func() lease.Stamp
	refused func(error)                 // reports that the server refuses the record
	begin   func(context.Context) error // begins a query for the program, unless the client is closed
	done    func()                      // ends that query
}

// clientRecord is the record of a client on the server, for people to read: its label, and the notes of its
// holds (lua/look/label_write.lua). It is written in the background while the client holds or waits for something,
// expires after its last lease, and is removed by close. No lock depends on it: if a write fails, the
// information is missing for a while.
type clientRecord struct {
	config labelConfig

	id    string          // see identity.Owner.Record
	open  context.Context // until close
	end   context.CancelFunc
	tasks sync.WaitGroup

	mu        sync.Mutex
	writing   bool
	closed    bool
	written   bool                   // the record may exist
	refreshAt time.Duration          // when to write it again so that it lasts
	until     time.Duration          // when it expires, as far as the client knows
	wanted    time.Duration          // when it should expire
	notBefore time.Duration          // no write before that, after a failure
	kept      time.Duration          // until when a lock that the client has released stays taken
	notes     map[string][]*holdNote // of live holds, by the field of their owner
	changed   map[string]struct{}    // fields to write
	stored    map[string]struct{}    // fields that the server may have
	sending   map[string]struct{}    // fields that the write under way sets
}

// longAgo is a time that has passed, on a clock with any starting point.
const longAgo = math.MinInt64 / 2

func newClientRecord(c labelConfig) *clientRecord {
	r := &clientRecord{config: c, id: identity.RecordOfClient(c.client), closed: c.label == "",
		refreshAt: longAgo, until: longAgo, wanted: longAgo, notBefore: longAgo, kept: longAgo,
		notes: map[string][]*holdNote{}, changed: map[string]struct{}{}, stored: map[string]struct{}{},
		sending: map[string]struct{}{}}
	r.open, r.end = context.WithCancel(context.Background())
	return r
}

// use makes the record outlive a lease that begins now: the client holds, or waits for, something.
func (r *clientRecord) use(now, lease time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	end := now + min(lease, longestRecord)
	r.wanted = max(r.wanted, end+recordLife)
	if now >= r.refreshAt || end > r.until {
		r.start(now)
	}
}

// keepUntil notes until when a lock stays taken after its release.
func (r *clientRecord) keepUntil(until time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = max(r.kept, until)
}

// start writes the record in the background, unless a write is under way. The caller holds r.mu.
func (r *clientRecord) start(now time.Duration) {
	if r.writing || r.closed || now < r.notBefore {
		return
	}
	r.writing = true
	r.tasks.Go(r.write)
}

// tellChanges writes changes now that could otherwise wait.
func (r *clientRecord) tellChanges() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.changed) > 0 {
		r.start(r.config.clock().Mono)
	}
}

// write writes the record, and goes on while there is more to write.
func (r *clientRecord) write() {
	for w := r.next(true); w != nil; w = r.next(false) {
		fresh, err := r.send(w)
		if r.sent(w, fresh, err); transport.Classify(err) == transport.Refused {
			r.config.refused(err)
		}
		if transport.Rest(r.open, nil, recordPause) != nil {
			return
		}
	}
}

// recordWrite is the content of one command.
type recordWrite struct {
	at, life    time.Duration
	texts, gone []string // fields and their values to set; fields to remove
}

// next collects the next write, or returns nil if there is nothing to write.
func (r *clientRecord) next(first bool) *recordWrite {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.config.clock().Mono
	if !first && len(r.changed) == 0 && r.wanted-recordLife <= r.until || now < r.notBefore || r.closed {
		r.writing = false
		return nil
	}
	w := &recordWrite{at: now, life: max(r.wanted-now, recordLife)}
	for field := range r.changed {
		if len(w.texts)/2+len(w.gone) == recordFields {
			break
		}
		delete(r.changed, field)
		if text := r.note(field); text != "" {
			w.texts = append(w.texts, field, text)
			r.sending[field] = struct{}{}
		} else if _, stored := r.stored[field]; stored {
			w.gone = append(w.gone, field)
		}
	}
	return w
}

// send sends one write, once. It reports whether the record did not exist before.
func (r *clientRecord) send(w *recordWrite) (fresh bool, err error) {
	args := append([]string{script.MillisText(w.life), r.config.label, strconv.Itoa(len(w.gone))}, w.gone...)
	ctx, cancel := context.WithTimeout(r.open, recordPatience)
	defer cancel()
	n, err := r.config.sender.SendOnce(ctx, script.LabelWrite, []string{keyspace.RecordKey(r.id)}, append(args, w.texts...)).AsInt64()
	return n == 1, err
}

// noteOf returns the note of an owner of this client.
func (r *clientRecord) noteOf(field string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.note(field)
}

// sent records the outcome of a write.
func (r *clientRecord) sent(w *recordWrite, fresh bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.written = true // even on an error: only the answer may be lost
	clear(r.sending)
	if err != nil {
		r.failed(w, err)
		return
	}
	r.until, r.refreshAt = w.at+w.life, w.at+recordRefresh
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
func (r *clientRecord) failed(w *recordWrite, err error) {
	if r.open.Err() != nil {
		return
	}
	pause, refused := recordRetry, transport.Classify(err) == transport.Refused
	if refused {
		pause = recordRefresh
	}
	r.notBefore = r.config.clock().Mono + pause
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

// mark has a field written, unless there is no note and the server cannot have one. The caller holds r.mu.
func (r *clientRecord) mark(field string) {
	_, stored := r.stored[field]
	_, sending := r.sending[field]
	if stored || sending || r.note(field) != "" {
		r.changed[field] = struct{}{}
	} else {
		delete(r.changed, field)
	}
}

// close stops the writing and removes the record. It lets the record expire instead if the server has not
// answered lately, or if a lock stays taken and the record names its former holder.
func (r *clientRecord) close(ctx context.Context, answers bool) {
	r.mu.Lock()
	r.closed = true
	r.end()
	r.mu.Unlock()
	r.tasks.Wait()
	r.mu.Lock()
	removes := answers && r.written && r.kept <= r.config.clock().Mono
	r.mu.Unlock()
	if !removes {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, recordPatience)
	defer cancel()
	_ = r.config.sender.SendOnce(ctx, script.LabelWrite, []string{keyspace.RecordKey(r.id)}, []string{"0"}).Error()
}
