package latchkey

import (
	"context"
	"log/slog"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/transport"
)

const (
	// recordRefresh is how often a client writes its record while it is in use.
	recordRefresh = time.Minute
	// recordLife is for how long the record outlives the leases of the client.
	recordLife = 2 * recordRefresh
	// longestRecord bounds the leases that count: what a client that has died has said goes in the end.
	longestRecord = 24 * time.Hour
	// recordPause is between two writes, so that notes go together.
	recordPause = 20 * time.Millisecond
	// recordRetry is the pause after a write that failed.
	recordRetry = 10 * time.Second
	// recordPatience is what one write or one look may take.
	recordPatience = time.Second
	// recordFields is how many notes one write tells.
	recordFields = 500
)

// clientRecord is what a client says of itself on the server, for people: its label, and the notes of its
// holds (lua/label_write.lua). It is written in the background while the client holds something or waits,
// expires after its last lease, and is removed by Close. No lock depends on it: what cannot be written is
// missing for a while.
type clientRecord struct {
	client *Client
	id     string          // see recordOf
	open   context.Context // until close
	end    context.CancelFunc
	tasks  sync.WaitGroup
	due    atomic.Int64 // when it is to be written next, on the monotonic clock

	mu        sync.Mutex
	writing   bool
	closed    bool
	written   bool                   // it may be there
	refreshAt time.Duration          // it is written again to last
	until     time.Duration          // when it expires, as far as is known
	wanted    time.Duration          // when it may expire
	notBefore time.Duration          // it is written again, after a failure
	kept      time.Duration          // until when a lock stays taken that the client has released
	notes     map[string][]*holdNote // of holds that stand, by the field of their owner
	changed   map[string]struct{}    // fields that are to be written
	told      map[string]struct{}    // fields that are there
}

// never is a time that does not come, and longAgo one that is over, on a clock that may have begun anywhere.
const (
	never   = math.MaxInt64
	longAgo = math.MinInt64 / 2
)

func newClientRecord(c *Client) *clientRecord {
	r := &clientRecord{client: c, id: c.id[:recordID], until: longAgo, wanted: longAgo, notBefore: longAgo, kept: longAgo,
		notes: map[string][]*holdNote{}, changed: map[string]struct{}{}, told: map[string]struct{}{}}
	r.open, r.end = context.WithCancel(context.Background())
	r.due.Store(longAgo)
	if r.closed = c.options.Label == NoLabel; r.closed {
		r.due.Store(never)
	}
	return r
}

// use has the record written if it is time to. The client has, or waits for, something with that lease.
func (r *clientRecord) use(now, lease time.Duration) {
	if int64(now) >= r.due.Load() || lease > recordRefresh {
		r.last(now, min(lease, longestRecord))
	}
}

// last has the record last for a lease.
func (r *clientRecord) last(now, lease time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wanted = max(r.wanted, now+lease+recordLife)
	if int64(now) >= r.due.Load() || now+lease > r.until {
		r.start(now)
	}
}

// keep notes that a lock stays taken for a while after its release.
func (r *clientRecord) keep(until time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = max(r.kept, until)
}

// start has the record written, unless it is being written. r.mu is held.
func (r *clientRecord) start(now time.Duration) {
	if r.writing || r.closed || now < r.notBefore {
		return
	}
	r.writing = true
	r.due.Store(never)
	r.tasks.Go(r.write)
}

// tellChanges has the server told now of what may wait otherwise.
func (r *clientRecord) tellChanges() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.changed) > 0 {
		r.start(r.client.clock().Mono)
	}
}

// write writes the record, and goes on while there is more to tell.
func (r *clientRecord) write() {
	for w := r.next(true); w != nil; w = r.next(false) {
		fresh, err := r.send(w)
		if r.sent(w, fresh, err); transport.Classify(err) == transport.Refused {
			r.client.reporter.log(noticeLabel, r.client.options.Label, slog.Any("error", err))
		}
		if transport.Rest(r.open, nil, recordPause) != nil {
			return
		}
	}
}

// recordWrite is what one command tells.
type recordWrite struct {
	at, life    time.Duration
	texts, gone []string // fields and their values; fields
}

// next collects what is to be told, or returns nil if that is nothing.
func (r *clientRecord) next(first bool) *recordWrite {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.client.clock().Mono
	if !first && len(r.changed) == 0 && r.wanted-recordLife <= r.until || now < r.notBefore || r.closed {
		r.writing = false
		r.due.Store(int64(max(r.notBefore, r.refreshAt)))
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
		} else if _, told := r.told[field]; told {
			w.gone = append(w.gone, field)
		}
	}
	return w
}

// send sends one write, once. It reports whether the record was not there.
func (r *clientRecord) send(w *recordWrite) (fresh bool, err error) {
	args := append([]string{strconv.FormatInt(millis(w.life), 10), r.client.options.Label, strconv.Itoa(len(w.gone))}, w.gone...)
	ctx, cancel := context.WithTimeout(r.open, recordPatience)
	defer cancel()
	n, err := r.client.sender.SendOnce(ctx, labelWrite, []string{recordKey(r.id)}, append(args, w.texts...)).AsInt64()
	return n == 1, err
}

// noteOf is the note of an owner of this client.
func (r *clientRecord) noteOf(field string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.note(field)
}

// sent takes note of what has come of a write.
func (r *clientRecord) sent(w *recordWrite, fresh bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.written = true // an answer may be lost
	if err != nil {
		r.failed(w, err)
		return
	}
	r.until, r.refreshAt = w.at+w.life, w.at+recordRefresh
	if fresh && len(r.told) > 0 { // the server has lost it
		clear(r.told)
		for field := range r.notes {
			r.changed[field] = struct{}{}
		}
	}
	for i := 0; i < len(w.texts); i += 2 {
		r.told[w.texts[i]] = struct{}{}
	}
	for _, field := range w.gone {
		delete(r.told, field)
	}
}

// failed has the same told later. r.mu is held.
func (r *clientRecord) failed(w *recordWrite, err error) {
	if r.open.Err() != nil {
		return
	}
	pause := recordRetry
	if transport.Classify(err) == transport.Refused {
		pause = recordRefresh
	}
	r.notBefore = r.client.clock().Mono + pause
	for i := 0; i < len(w.texts); i += 2 {
		r.changed[w.texts[i]] = struct{}{}
		r.told[w.texts[i]] = struct{}{} // or may be
	}
	for _, field := range w.gone {
		r.changed[field] = struct{}{}
	}
}

// close ends the writing, and removes the record: unless a lock stays taken for which it tells who had it, or
// the server has not answered lately. Then it expires.
func (r *clientRecord) close(ctx context.Context, answers bool) {
	r.mu.Lock()
	r.closed = true
	r.due.Store(never)
	r.end()
	r.mu.Unlock()
	r.tasks.Wait()
	r.mu.Lock()
	removes := answers && r.written && r.kept <= r.client.clock().Mono
	r.mu.Unlock()
	if !removes {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, recordPatience)
	defer cancel()
	_ = r.client.sender.SendOnce(ctx, labelWrite, []string{recordKey(r.id)}, []string{"0"}).Error()
}
