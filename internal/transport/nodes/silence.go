package nodes

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// answerTimeout is how long a connection may stay silent after a write.
	answerTimeout = 3 * time.Second
	// readerPause is the extra time for the reader if this process got no processor time.
	readerPause = 100 * time.Millisecond
)

// silence breaks a connection that receives nothing after a write. rueidis detects that only when
// it pings, and pings are far apart, because each costs the server a command for each idle
// connection. A command that blocks on the server does not trigger this, because it is never sent
// alone: the reply to the command before it arrives.
type silence struct {
	conn  net.Conn
	start time.Time
	since atomic.Int64 // when the first unanswered write was made, counted from start; or 0

	mu    sync.Mutex
	timer *time.Timer // runs look; nil before the first use
	ended bool
	looks atomic.Bool   // a look is scheduled
	late  time.Duration // the value of since that was last found to be too old
}

func newSilence(conn net.Conn) *silence { return &silence{conn: conn, start: time.Now()} }

// write notes a write that is about to happen.
func (s *silence) write() {
	if s.since.Load() == 0 {
		s.since.Store(max(int64(time.Since(s.start)), 1))
	}
	if s.looks.CompareAndSwap(false, true) {
		s.lookIn(answerTimeout)
	}
}

// read notes that something was received.
func (s *silence) read() { s.since.Store(0) }

// stop ends the watch.
func (s *silence) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	if s.timer != nil {
		s.timer.Stop()
	}
}

func (s *silence) lookIn(pause time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended:
	case s.timer == nil:
		s.timer = time.AfterFunc(pause, s.look)
	default:
		s.timer.Reset(pause)
	}
}

// look breaks the connection if it has been silent for too long.
func (s *silence) look() {
	since := time.Duration(s.since.Load())
	if since == 0 {
		s.looks.Store(false)
		if s.since.Load() != 0 && s.looks.CompareAndSwap(false, true) { // written in between
			s.lookIn(answerTimeout)
		}
		return
	}
	if left := answerTimeout - (time.Since(s.start) - since); left > 0 {
		s.lookIn(left)
		return
	}
	if s.late != since {
		s.late = since
		s.lookIn(readerPause)
		return
	}
	if s.conn.SetReadDeadline(s.start) != nil { // a tunnel may not know deadlines
		_ = s.conn.Close()
	}
}
