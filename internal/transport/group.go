package transport

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/transport/nodes"
)

// Group commit: commands that goroutines of a client send to one server at the same moment go in
// one script. No command waits for others: a group is sent as soon as the goroutines that are ready
// to run have had the chance to join it. Each command gets the reply that it would get alone. If
// the server refuses the group as a whole, or a command raises an error, those commands are sent
// again, alone.

const (
	// groupFrom is how many commands must be in flight before they are grouped. Fewer are faster
	// alone.
	groupFrom = 4
	// groupSize is the maximum number of commands in a group. While the server executes one group,
	// the client prepares the next.
	groupSize = 64
	// groupSpread is how far apart the deadlines of commands in a group may be.
	groupSpread = 50 * time.Millisecond
	// groupPause is how long commands are sent alone after the server has refused a group as a
	// whole.
	groupPause = 5 * time.Second
)

// grouping is what a sender knows of commands that may be grouped: those to its only node. The zero
// value is ready to use.
type grouping struct {
	underWay atomic.Int64 // commands

	mu        sync.Mutex
	open      *group        // the group that can be joined, or nil
	abandoned int           // unanswered commands whose callers have left
	refused   bool          // the server has recently refused a group
	settled   chan struct{} // closes when abandoned is 0 again; or nil
}

// group is a set of commands that are sent together.
type group struct {
	script  *GroupScript
	end     time.Time
	loose   bool // a caller waits for the answer beyond end
	closed  bool // nobody can join it any more; it is being sent
	over    bool // it has been answered
	left    int  // callers that left after it was closed
	members []*groupMember
}

// groupMember is a command of a group.
type groupMember struct {
	call     Call
	answered chan struct{} // holds one element when the reply has arrived

	left  bool // its caller left before the group was closed; grouping.mu guards it
	reply groupReply
}

// groupReply is the outcome of one attempt to send a command.
type groupReply struct {
	message rueidis.RedisMessage
	err     error
	sentIn  nodes.Generation
	alone   bool // the command has to be sent alone
}

var groupMembers = sync.Pool{New: func() any { return &groupMember{answered: make(chan struct{}, 1)} }}

// take returns the reply, and returns the member to the pool.
func (m *groupMember) take() groupReply {
	r := m.reply
	m.call, m.reply = Call{}, groupReply{}
	groupMembers.Put(m)
	return r
}

// join adds a command to the open group, or opens one. It returns nil if the open group is not for
// such a command.
func (g *grouping) join(m *groupMember, on Terms) (joined *group, isFirst bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refused || g.abandoned > 0 { // the server may be silent
		return nil, false
	}
	if g.open == nil || len(g.open.members) == groupSize {
		g.open = &group{script: m.call.Cmd.together, end: on.end, members: make([]*groupMember, 0, groupSize)}
		isFirst = true
	}
	if g.open.script != m.call.Cmd.together || g.open.end.Sub(on.end).Abs() > groupSpread {
		return nil, false
	}
	g.open.members = append(g.open.members, m)
	g.open.loose = g.open.loose || on.Waits
	return g.open, isFirst
}

// whenLeft says at what moment the caller of a command left its group.
type whenLeft int

const (
	leftUnsent   whenLeft = iota // the command will not be sent
	leftUnderWay                 // the command is in flight, or about to be
	leftAnswered                 // the reply is about to arrive
)

// leave notes that the caller of a command leaves, and returns at what moment.
func (g *grouping) leave(of *group, m *groupMember) whenLeft {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case !of.closed:
		m.left = true
		return leftUnsent
	case of.over:
		return leftAnswered
	}
	of.left++
	g.abandoned++
	return leftUnderWay
}

// answered notes that a group has no commands in flight any more.
func (g *grouping) answered(of *group) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.abandoned -= of.left
	of.over = true
	if g.abandoned == 0 && g.settled != nil {
		close(g.settled)
		g.settled = nil
	}
}

// whenSettled returns a channel that closes when no command is in flight any more for a caller that
// has left, or nil if there is none.
func (g *grouping) whenSettled() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.abandoned > 0 && g.settled == nil {
		g.settled = make(chan struct{})
	}
	return g.settled
}

// pause stops grouping for a while.
func (g *grouping) pause() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refused {
		return
	}
	g.refused = true
	time.AfterFunc(groupPause, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.refused = false
	})
}

// close closes a group and returns the commands to send.
func (g *grouping) close(of *group) []*groupMember {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open == of {
		g.open = nil
	}
	of.closed = true
	return slices.DeleteFunc(of.members, func(m *groupMember) bool { return m.left })
}

func (m *groupMember) answer(r groupReply) {
	m.reply = r
	m.answered <- struct{}{}
}
