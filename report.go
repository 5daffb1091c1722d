package latchkey

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/engine/pubsub"
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

// reporter passes log lines and events of a client to its logger and observer, in the order in which they
// happen. Both are code of the program that may block or panic. So only one goroutine calls them, which runs
// only while there is something to report.
type reporter struct {
	logger   *slog.Logger
	observer func(Event) // or nil

	mu      sync.Mutex
	queue   []report
	running chan struct{} // closed when the goroutine ends; nil while there is none
	closed  bool
	periods map[string]*period // by the text of the notice
}

// report is an event or a log line.
type report struct {
	event Event
	line  *slog.Record
}

// period is the time after a notice was logged in which it is not logged again.
type period struct {
	notice   notice
	ends     time.Time
	subjects map[string]struct{} // subjects that were logged
	repeated int                 // lines that were left out
	last     *slog.Record        // the last of them
	timer    *time.Timer         // logs the number of left-out lines
}

func newReporter(o Options) *reporter {
	return &reporter{logger: o.Logger, observer: o.Observer, periods: map[string]*period{}}
}

// observe queues an event for the observer.
func (r *reporter) observe(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed && !r.put(report{event: e}, maxReports) {
		r.logLocked(noticeDropped, e.Type.String())
	}
}

// log logs a notice, unless the same one was logged in its period about the same subject, or about maxSubjects
// others. Lines that are left out are counted. When the period is over, the last of them is logged with the
// number.
func (r *reporter) log(n notice, subject string, attrs ...slog.Attr) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.logLocked(n, subject, attrs...)
	}
}

// ofMessages returns what logs that messages are missing.
func (r *reporter) ofMessages() pubsub.Reports {
	logs := func(n notice) func(string, error) {
		return func(subject string, err error) { r.log(n, subject, slog.Any("error", err)) }
	}
	return pubsub.Reports{Lost: logs(noticeSubscription), BeatRefused: logs(noticeBeat), ChannelRefused: logs(noticeSubscribe)}
}

// logLocked is log with r.mu held.
func (r *reporter) logLocked(n notice, subject string, attrs ...slog.Attr) {
	line := n.line(subject, attrs)
	p := r.periods[n.text]
	if p == nil || p.timer == nil && !line.Time.Before(p.ends) {
		p = &period{notice: n, ends: line.Time.Add(n.every), subjects: map[string]struct{}{}}
		r.periods[n.text] = p
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

// sumUp logs how many lines were left out, and begins another period. Subjects that were logged are not logged
// again until a period has passed in which no line was left out.
func (r *reporter) sumUp(p *period) {
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

// writeSum logs the last line of a period with the number of lines that were left out. r.mu is held.
func (r *reporter) writeSum(p *period) bool {
	line := p.last.Clone()
	line.AddAttrs(slog.Int("repeated", p.repeated))
	if !r.write(&line) {
		return false
	}
	p.repeated = 0
	return true
}

// write queues a log line if there is room for it. r.mu is held.
func (r *reporter) write(line *slog.Record) bool {
	return r.put(report{line: line}, maxReports+reservedReports)
}

// put queues a report unless the queue already has longest reports. r.mu is held.
func (r *reporter) put(next report, longest int) bool {
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
func (r *reporter) run() {
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
func (r *reporter) next() (next report, more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.queue) == 0 {
		r.queue = nil
		close(r.running)
		r.running = nil
		return report{}, false
	}
	next, r.queue[0] = r.queue[0], report{}
	r.queue = r.queue[1:]
	return next, true
}

// deliver calls the observer or the logger, and survives their panics.
func (r *reporter) deliver(next report) {
	defer func() {
		if cause := recover(); cause != nil && next.line == nil {
			r.log(noticePanic, next.event.Type.String(), slog.Any("panic", cause), slog.String("stack", string(debug.Stack())))
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

// close delivers the remaining reports, and fails if that takes longer than ctx or patience allow. It accepts
// no new reports.
func (r *reporter) close(ctx context.Context, patience time.Duration) error {
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
func (r *reporter) finish() (running <-chan struct{}) {
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
