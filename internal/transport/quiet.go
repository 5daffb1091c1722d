package transport

import (
	"sync/atomic"
	"time"
)

// A connection is quiet while commands come one at a time. The caller then writes its command and reads the
// reply itself; otherwise a goroutine of rueidis writes and another one reads, and to switch to them and
// back takes a good part of the time of a command. rueidis lets the caller do so as long as no two commands
// have overlapped on the connection and no context that can end has come with one. From then on it has the
// two goroutines, for as long as the connection lives.
//
// So a command takes the turn on a quiet connection. One that comes while another has it waits for a moment.
// That must be rare: commands that overlap again and again are better off with the goroutines.
//
// A caller cannot leave while it reads. So only those read themselves that may wait until a silent server is
// noticed; any other has a goroutine that does. rueidis gives the connection a deadline then, ConnWriteTimeout
// after the command, at which it is closed. At a deadline of a context it would be closed too: rueidis is
// told of none.

const (
	// quietWait is for how long a command waits for the turn. Most are answered by then.
	quietWait = time.Millisecond
	// quietSpread is how far apart commands are that have to wait for the turn.
	quietSpread = 10 * time.Millisecond
	// deadlineSlack is how much later a deadline of a connection may be than it is told, because to
	// set it for each command takes time.
	deadlineSlack = 250 * time.Millisecond
	// uncheckedFor is for how long after a command a connection that nobody reads counts as up.
	uncheckedFor = 10 * time.Millisecond
)

// quietTurn is the turn on the connection to a node, if that is quiet.
type quietTurn struct {
	taken  chan struct{} // holds one while a command has the turn
	ended  atomic.Int64  // the generation in which the connection was found not to be quiet, and one more
	waited atomic.Int64  // when a command had to wait, in nanoseconds
}

func newQuietTurn() quietTurn { return quietTurn{taken: make(chan struct{}, 1)} }

// enter takes the turn for a command, and reports whether it has. If not, the connection is not quiet.
func (q *quietTurn) enter(now Generation) bool {
	if q.ended.Load() == now.Here+1 {
		return false
	}
	select {
	case q.taken <- struct{}{}:
		return true
	default:
		return q.wait(now)
	}
}

func (q *quietTurn) wait(now Generation) bool {
	at, last := time.Now().UnixNano(), q.waited.Load()
	if at-last > int64(quietSpread) && q.waited.CompareAndSwap(last, at) {
		timer := time.NewTimer(quietWait)
		defer timer.Stop()
		select {
		case q.taken <- struct{}{}:
			return true
		case <-timer.C:
		}
	}
	q.end(now)
	return false
}

// leave gives the turn back when the command is answered.
func (q *quietTurn) leave() { <-q.taken }

// end notes that the connection is not quiet any more.
func (q *quietTurn) end(now Generation) { q.ended.Store(now.Here + 1) }
