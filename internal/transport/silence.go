package transport

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// answerTimeout is how long a connection may stay silent after something was sent.
	answerTimeout = 3 * time.Second
	// readerPause is what the reader has to read what has come, after this process had no processor.
	readerPause = 100 * time.Millisecond
)

// silence breaks a connection on which nothing is heard after something was sent. rueidis finds
// that out only when it pings, and pings are far apart: each costs the server a command, for each
// connection that is idle. A command that blocks on the server is not alone: the reply to what was
// sent before it is heard.
type silence struct {
	conn  net.Conn
	start time.Time
	since atomic.Int64 // from start, when something was sent after which nothing was heard; or 0

	mu    sync.Mutex
	timer *time.Timer // runs look, or is nil while nobody looks
	ended bool
	looks atomic.Bool   // somebody does
	late  time.Duration // the since that was found to be too long ago
}

func newSilence(conn net.Conn) *silence { return &silence{conn: conn, start: time.Now()} }

// write notes that something is about to be sent.
func (s *silence) write() {
	if s.since.Load() == 0 {
		s.since.Store(max(int64(time.Since(s.start)), 1))
	}
	if s.looks.CompareAndSwap(false, true) {
		s.lookIn(answerTimeout)
	}
}

// read notes that something was heard.
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
