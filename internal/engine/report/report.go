// Package report tells the program what happens: events for its observer, lines for its logger.
package report

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"
)

const (
	// maxReports is how many events wait for the observer; more are dropped.
	maxReports = 8192
	// reservedReports is room for log lines, which events must not displace.
	reservedReports = 256
	// maxSubjects is how many subjects of one notice are logged in its period.
	maxSubjects = 8
)

// errReports means that the logger or the observer did not return in time.
var errReports = errors.New("latchkey: the logger or the observer does not return")

// Reporter passes log lines and events of a client to its logger and observer, in the order in
// which they happen. Both are code of the program that may block or panic. So only one goroutine
// calls them, which runs only while there is something to report.
type Reporter struct {
	logger   *slog.Logger
	observer func(Event) // or nil

	mu      sync.Mutex
	queue   []item
	running chan struct{} // closed when the goroutine ends; nil while there is none
	closed  bool
	periods map[string]*period // by the text of the notice
}

// item is an event or a log line.
type item struct {
	event Event
	line  *slog.Record
}

// period is the time after a notice was logged in which it is not logged again.
type period struct {
	notice   Notice
	ends     time.Time
	subjects map[string]struct{} // subjects that were logged
	repeated int                 // lines that were left out
	last     *slog.Record        // the last of them
	timer    *time.Timer         // logs the number of left-out lines
}

// New returns the reporter of a client. Without an observer there are no events.
func New(logger *slog.Logger, observer func(Event)) *Reporter {
	return &Reporter{logger: logger, observer: observer, periods: map[string]*period{}}
}

// Parent returns the values of a context for the events of a call, or nil if there is no observer.
// It returns a pointer because each hold stores one.
func (r *Reporter) Parent(ctx context.Context) *context.Context {
	if r.observer == nil {
		return nil
	}
	parent := context.WithoutCancel(ctx)
	return &parent
}

// Observe queues an event of a call with that parent for the observer, if there is one.
func (r *Reporter) Observe(parent *context.Context, e Event) {
	if r.observer == nil {
		return
	}
	if e.Context = context.Background(); parent != nil {
		e.Context = *parent
	}
	e.Time = time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed && !r.put(item{event: e}, maxReports) {
		r.logLocked(noticeDropped, e.Type.String())
	}
}

// Log logs a notice, unless the same one was logged in its period about the same subject, or about
// maxSubjects others. Lines that are left out are counted. When the period is over, the last of
// them is logged with the number.
func (r *Reporter) Log(n Notice, subject string, attrs ...slog.Attr) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.logLocked(n, subject, attrs...)
	}
}

// logLocked is Log with r.mu held.
func (r *Reporter) logLocked(n Notice, subject string, attrs ...slog.Attr) {
	line := n.line(subject, attrs)
	p := r.periods[n.Text]
	if p == nil || p.timer == nil && !line.Time.Before(p.ends) {
		p = &period{notice: n, ends: line.Time.Add(n.every), subjects: map[string]struct{}{}}
		r.periods[n.Text] = p
	}
	_, again := p.subjects[subject]
	if !again && len(p.subjects) < maxSubjects && r.write(line) {
		p.subjects[subject] = struct{}{}
		return
	}
	p.repeated++
	p.last = line
	if p.timer == nil {
		p.timer = time.AfterFunc(p.ends.Sub(line.Time), func() { r.sumUp(p) })
	}
}

// sumUp logs how many lines were left out, and begins another period. Subjects that were logged are
// not logged again until a period has passed in which no line was left out.
func (r *Reporter) sumUp(p *period) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	p.timer, p.ends = nil, time.Now().Add(p.notice.every)
	if !r.writeSum(p) { // the log blocks
		p.timer = time.AfterFunc(p.notice.every, func() { r.sumUp(p) })
	}
}

// writeSum logs the last line of a period with the number of lines that were left out. r.mu is
// held.
func (r *Reporter) writeSum(p *period) bool {
	line := p.last.Clone()
	line.AddAttrs(slog.Int("repeated", p.repeated))
	if !r.write(&line) {
		return false
	}
	p.repeated = 0
	return true
}

// write queues a log line if there is room for it. r.mu is held.
func (r *Reporter) write(line *slog.Record) bool {
	return r.put(item{line: line}, maxReports+reservedReports)
}

// put queues a report unless the queue already has longest reports. r.mu is held.
func (r *Reporter) put(next item, longest int) bool {
	if len(r.queue) >= longest {
		return false
	}
	r.queue = append(r.queue, next)
	if r.running == nil {
		r.running = make(chan struct{})
		go r.run()
	}
	return true
}

// run delivers reports until none is left. It survives a handler that ends its goroutine.
func (r *Reporter) run() {
	done := false
	defer func() {
		if !done {
			go r.run()
		}
	}()
	for {
		next, more := r.next()
		if !more {
			done = true
			return
		}
		r.deliver(next)
	}
}

// next takes the oldest report. If there is none, it marks the goroutine as ended.
func (r *Reporter) next() (next item, more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.queue) == 0 {
		r.queue = nil
		close(r.running)
		r.running = nil
		return item{}, false
	}
	next, r.queue[0] = r.queue[0], item{}
	r.queue = r.queue[1:]
	return next, true
}

// deliver calls the observer or the logger, and survives their panics.
func (r *Reporter) deliver(next item) {
	defer func() {
		if cause := recover(); cause != nil && next.line == nil {
			stack := slog.String("stack", string(debug.Stack()))
			r.Log(noticePanic, next.event.Type.String(), slog.Any("panic", cause), stack)
		}
	}()
	if next.line == nil {
		r.observer(next.event)
		return
	}
	ctx := context.Background()
	if handler := r.logger.Handler(); handler.Enabled(ctx, next.line.Level) {
		_ = handler.Handle(ctx, *next.line) // there is nobody to report the error to
	}
}

// Close delivers the remaining reports, and fails if that takes longer than ctx or patience allow.
// It accepts no new reports.
func (r *Reporter) Close(ctx context.Context, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	running := r.finish()
	if running == nil {
		return nil
	}
	select {
	case <-running:
		return nil
	case <-ctx.Done():
		return errReports
	}
}

// finish logs all pending sums, and returns the channel that closes with the goroutine, or nil.
func (r *Reporter) finish() (running <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.periods {
		if p.timer != nil {
			p.timer.Stop()
			r.writeSum(p)
		}
	}
	r.closed = true
	return r.running
}
