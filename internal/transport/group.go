package transport

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// Group commit: commands that goroutines of a client send to one server at the same moment go in one
// script. Nobody waits for company: a group is sent as soon as the goroutines that are ready to run have
// had the chance to join it. Each command gets the reply that it would get alone. If the server
// refuses the group as a whole, or a command raises an error, the commands concerned are sent again, alone.

const (
	// groupFrom is how many commands must be under way before they go together. Fewer are quicker alone.
	groupFrom = 4
	// groupSize is how many commands go together at most. While the server executes one group, the
	// client prepares the next.
	groupSize = 64
	// groupSpread is how far apart the ends of commands may be that go together.
	groupSpread = 50 * time.Millisecond
	// groupPause is for how long commands go alone after the server has refused a group as a whole.
	groupPause = 5 * time.Second
)

// grouping is what a node knows of the commands that may go together. The zero value is ready.
type grouping struct {
	underWay atomic.Int64 // commands

	mu        sync.Mutex
	open      *group        // that can be joined, or nil
	abandoned int           // commands whose callers have left, and that are not answered
	refused   bool          // the server has refused a group not long ago
	settled   chan struct{} // closes when none is abandoned any more, or nil
}

// group is commands that go together.
type group struct {
	script  *GroupScript
	end     time.Time
	loose   bool // somebody waits for the answer beyond that
	closed  bool // nobody can join it any more, and it is about to be sent
	over    bool // it has been answered
	left    int  // callers that have left in between
	members []*groupMember
}

// groupMember is a command of a group.
type groupMember struct {
	command    Command
	keys, args []string
	answered   chan struct{} // holds one when the reply is there

	left  bool // its caller has, before the group was closed; grouping.mu guards it
	reply groupReply
}

// groupReply is what came of one attempt at a command.
type groupReply struct {
	message rueidis.RedisMessage
	err     error
	sentIn  Generation
	alone   bool // it is to be sent alone
}

var groupMembers = sync.Pool{New: func() any { return &groupMember{answered: make(chan struct{}, 1)} }}

// take returns the reply, and gives the member back for reuse.
func (m *groupMember) take() groupReply {
	r := m.reply
	m.keys, m.args, m.reply = nil, nil, groupReply{}
	groupMembers.Put(m)
	return r
}

// join adds a command to the group that is open, or opens one. It returns nil if the group that is open is
// not for such a command.
func (g *grouping) join(m *groupMember, end limit) (joined *group, isFirst bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refused || g.abandoned > 0 { // the server may be silent
		return nil, false
	}
	if g.open == nil || len(g.open.members) == groupSize {
		g.open = &group{script: m.command.together, end: end.at, members: make([]*groupMember, 0, groupSize)}
		isFirst = true
	}
	if g.open.script != m.command.together || g.open.end.Sub(end.at).Abs() > groupSpread {
		return nil, false
	}
	g.open.members = append(g.open.members, m)
	g.open.loose = g.open.loose || end.loose
	return g.open, isFirst
}

// whenLeft is when the caller of a command has left its group.
type whenLeft int

const (
	leftUnsent   whenLeft = iota // the command is not sent
	leftUnderWay                 // it is, or is about to be
	leftAnswered                 // the reply is about to be there
)

// leave notes that the caller of a command leaves.
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

// answered notes that nothing is under way any more for a group.
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

// whenSettled returns a channel that closes when nothing is under way any more for callers that have left,
// or nil if nothing is.
func (g *grouping) whenSettled() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.abandoned > 0 && g.settled == nil {
		g.settled = make(chan struct{})
	}
	return g.settled
}

// pause keeps commands from going together for a while.
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

// close closes a group and returns the commands that are to be sent.
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
