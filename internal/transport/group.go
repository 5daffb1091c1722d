package transport

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
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
	// mostGroupKeys and mostGroupArgs are how many a command of a group has at most.
	mostGroupKeys, mostGroupArgs = 3, 12
)

// GroupScript runs several commands in one script.
type GroupScript struct {
	texts   []string
	heads   [][mostGroupKeys + 1][mostGroupArgs + 1]string // by the number of a command, of its keys and arguments
	once    sync.Once
	command Command
}

// Add returns a script, or the plain SET NX PX, as a command that may go together with others that were
// added. All are added before anything is sent.
func (g *GroupScript) Add(c Command) Command {
	text := c.Text
	if text == "" {
		text = `return redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])`
	}
	g.texts = append(g.texts, text)
	c.together, c.number = g, len(g.texts)
	return c
}

// get returns the command that runs a group. KEYS and ARGV are those of its commands, one after the other;
// before the arguments of each stands a number: which script, how many keys, how many arguments.
// The reply is an array of their replies. A script that fails replies LATCHKEY_ALONE.
func (g *GroupScript) get() Command {
	g.once.Do(func() {
		var b strings.Builder
		b.WriteString("local scripts = {")
		for _, text := range g.texts {
			fmt.Fprintf(&b, "function(KEYS, ARGV)\n%s\nend,", text)
		}
		b.WriteString(runGroup)
		g.command = NewScript(b.String())
		g.heads = make([][mostGroupKeys + 1][mostGroupArgs + 1]string, len(g.texts)+1)
		for number := range g.heads {
			for keys := range mostGroupKeys + 1 {
				for args := range mostGroupArgs + 1 {
					g.heads[number][keys][args] = strconv.Itoa((number*100+keys)*100 + args)
				}
			}
		}
	})
	return g.command
}

const runGroup = `}
local tonumber, unpack, pcall = tonumber, unpack, pcall
local replies, n, k, a = {}, 0, 0, 1
while ARGV[a] do
  local head = tonumber(ARGV[a])
  local args = head % 100
  head = (head - args) / 100
  local keys = head % 100
  local done, reply = pcall(scripts[(head - keys) / 100], {unpack(KEYS, k + 1, k + keys)}, {unpack(ARGV, a + 1, a + args)})
  if not done then
    reply = {err = 'LATCHKEY_ALONE'}
  end
  n = n + 1
  replies[n] = reply or false
  k = k + keys
  a = a + args + 1
end
return replies
`

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

// try sends a command one time, together with others or alone.
func (s *Sender) try(ctx context.Context, end limit, cmd Command, keys, args []string) (message rueidis.RedisMessage, sentIn Generation, err error) {
	n := s.node(keys[0])
	if s.mayGoTogether(&cmd, args) {
		defer n.grouping.underWay.Add(-1)
		if n.grouping.underWay.Add(1) >= groupFrom {
			if r := s.tryTogether(ctx, n, end, cmd, keys, args); !r.alone {
				return r.message, r.sentIn, r.err
			}
		}
	}
	result, sentIn := s.attempt(ctx, n, end, cmd, keys, args)
	message, err = result.ToMessage()
	return message, sentIn, err
}

// mayGoTogether reports whether a command may go together with others. In a cluster their slots may
// differ, and of a client that is borrowed nobody knows whether it returns in time.
func (s *Sender) mayGoTogether(cmd *Command, args []string) bool {
	return cmd.together != nil && len(args) <= mostGroupArgs && cmd.replication == nil && s.CancelsPromptly && !s.Topology.Cluster
}

// tryTogether sends a command one time in a group. If that is not possible, the reply says that it is to be
// sent alone.
func (s *Sender) tryTogether(ctx context.Context, n *Node, end limit, cmd Command, keys, args []string) groupReply {
	if _, steady := n.steady(); !steady {
		return groupReply{alone: true}
	}
	m := groupMembers.Get().(*groupMember)
	m.command, m.keys, m.args, m.left, m.reply = cmd, keys, args, false, groupReply{}
	g, isFirst := n.grouping.join(m, end)
	if g == nil {
		groupMembers.Put(m)
		return groupReply{alone: true}
	}
	if isFirst {
		s.Background(func() { s.sendGroup(n, g) })
	}
	patient := ctx
	if !end.loose {
		patient = s.ends.context(end.at, s.Patience)
	}
	var err error
	select {
	case <-m.answered:
		return m.take()
	case <-ctx.Done():
		err = ctx.Err()
	case <-patient.Done():
		err = patient.Err()
	}
	switch n.grouping.leave(g, m) {
	case leftUnsent:
		return groupReply{err: errUnsent, sentIn: NoGeneration}
	case leftAnswered:
		<-m.answered // for a moment
		return m.take()
	}
	// It may be sent after an undo that follows now: no generation proves anything.
	return groupReply{err: err, sentIn: NoGeneration}
}

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

// Settle returns when nothing is under way any more for callers that have left their group, or ctx ends.
// What is sent afterwards cannot be overtaken by it.
func (s *Sender) Settle(ctx context.Context) {
	settled := s.Topology.common.grouping.whenSettled()
	if settled == nil {
		return
	}
	select {
	case <-settled:
	case <-ctx.Done():
	}
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

// sendGroup sends a group and hands out the replies.
func (s *Sender) sendGroup(n *Node, g *group) {
	runtime.Gosched() // those who are ready to run may join
	members := n.grouping.close(g)
	whole := groupReply{alone: true}
	var replies []rueidis.RedisMessage
	if len(members) > 1 {
		replies, whole = s.sendTogether(n, g, members)
	}
	n.grouping.answered(g)
	for i, m := range members {
		r := whole
		if replies != nil {
			r.message, r.err = replies[i], replies[i].Error()
			r.alone = HasCode(r.err, "LATCHKEY_ALONE")
		}
		m.answer(r)
	}
}

// sendTogether sends the commands of a group, and returns their replies, or what came of all of them. A
// group that would have to wait for a slot or a connection is not sent: each caller knows for how long to
// wait, and has to know whether its own command was sent.
func (s *Sender) sendTogether(n *Node, g *group, members []*groupMember) (replies []rueidis.RedisMessage, whole groupReply) {
	load := groupLoads.Get().(*groupLoad)
	cmd := load.fill(g.script, members)
	slots := n.slotsFor(cmd)
	slot, free := slots.tryReserve()
	if !free {
		return nil, groupReply{alone: true}
	}
	sentIn, steady := n.steady()
	if !steady {
		slots.finish(slot)
		return nil, groupReply{alone: true}
	}
	ctx := context.Background()
	if !g.loose {
		ctx = s.ends.context(g.end, s.Patience)
	}
	result := n.firstAsText(cmd).Send(ctx, s.Client, load.keys, load.args)
	if ctx.Err() != nil && isContextError(result.Error()) {
		slots.abandon()
		return nil, groupReply{err: result.Error(), sentIn: sentIn}
	}
	slots.finish(slot)
	s.heard(n, sentIn, result)
	groupLoads.Put(load)
	if err := result.NonRedisError(); err != nil {
		return nil, groupReply{err: err, sentIn: sentIn}
	}
	if replies, _ = result.ToArray(); len(replies) != len(members) {
		n.grouping.pause()
		return nil, groupReply{alone: true} // the server has executed nothing
	}
	return replies, groupReply{sentIn: sentIn}
}

// groupLoad is what is sent for the members of a group.
type groupLoad struct{ keys, args []string }

var groupLoads = sync.Pool{New: func() any { return new(groupLoad) }}

// fill returns the command that sends the load of these members.
func (l *groupLoad) fill(script *GroupScript, members []*groupMember) Command {
	cmd := script.get()
	l.keys, l.args = l.keys[:0], l.args[:0]
	for _, m := range members {
		cmd.reserved = cmd.reserved || m.command.reserved
		l.keys = append(l.keys, m.keys...)
		l.args = append(l.args, script.head(m))
		l.args = append(l.args, m.args...)
	}
	return cmd
}

// head tells the script what to run, and with how many keys and arguments.
func (g *GroupScript) head(m *groupMember) string {
	return g.heads[m.command.number][len(m.keys)][len(m.args)]
}

func (m *groupMember) answer(r groupReply) {
	m.reply = r
	m.answered <- struct{}{}
}
