package transport

import (
	"context"
	"errors"
	"runtime"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/transport/nodes"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// mayGoTogether reports whether a command may be sent in a group. In a cluster the slots of the
// commands may differ, and a borrowed client may not return in time.
func (s *Sender) mayGoTogether(c *Call) bool {
	return c.Cmd.together != nil && len(c.Args) <= mostGroupArgs && c.Cmd.replication == nil &&
		s.CancelsPromptly && !s.Topology.Cluster
}

// tryTogether sends a command once, in a group. If that is not possible, the reply says to send it
// alone.
func (s *Sender) tryTogether(ctx context.Context, n *nodes.Node, on Terms, c Call) groupReply {
	if _, steady := n.Steady(); !steady {
		return groupReply{alone: true}
	}
	m := groupMembers.Get().(*groupMember)
	m.call, m.left, m.reply = c, false, groupReply{}
	g, isFirst := s.grouping.join(m, on)
	if g == nil {
		groupMembers.Put(m)
		return groupReply{alone: true}
	}
	if isFirst {
		s.Background(func() { s.sendGroup(n, g) })
	}
	err := s.awaitReply(ctx, m, on)
	if err == nil {
		return m.take()
	}
	switch s.grouping.leave(g, m) {
	case leftUnsent:
		return groupReply{err: outcome.ErrUnsent, sentIn: nodes.NoGeneration}
	case leftAnswered:
		<-m.answered // soon
		return m.take()
	}
	// It may still be sent, after an undo that follows now: no generation proves anything.
	return groupReply{err: err, sentIn: nodes.NoGeneration}
}

// awaitReply waits for the reply to a command of a group until ctx ends or the time is over.
func (s *Sender) awaitReply(ctx context.Context, m *groupMember, on Terms) error {
	patient := ctx
	if !on.Waits {
		patient = s.ends.context(on.end, s.Patience)
	}
	if ctx.Done() == nil && patient.Done() == nil { // a select costs more
		<-m.answered
		return nil
	}
	select {
	case <-m.answered:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-patient.Done():
		return patient.Err()
	}
}

// sendGroup sends a group and hands out the replies.
func (s *Sender) sendGroup(n *nodes.Node, g *group) {
	runtime.Gosched() // goroutines that are ready to run may join
	members := s.grouping.close(g)
	whole := groupReply{alone: true}
	var replies []rueidis.RedisMessage
	if len(members) > 1 {
		replies, whole = s.sendTogether(n, g, members)
	}
	s.grouping.answered(g)
	for i, m := range members {
		r := whole
		if replies != nil {
			r.message, r.err = replies[i], replies[i].Error()
			r.alone = outcome.HasCode(r.err, "LATCHKEY_ALONE")
		}
		m.answer(r)
	}
}

// sendTogether sends the commands of a group, and returns their replies, or one outcome for all of
// them. A group that would have to wait for a slot or a connection is not sent: each caller has its
// own limit for waiting, and has to know whether its command was sent.
func (s *Sender) sendTogether(
	n *nodes.Node, g *group, members []*groupMember,
) (replies []rueidis.RedisMessage, whole groupReply) {
	call := g.script.load(members)
	slots := call.Cmd.slots(n)
	slot, free := slots.TryReserve()
	if !free {
		return nil, groupReply{alone: true}
	}
	sentIn, steady := n.Steady()
	if !steady {
		slots.Finish(slot)
		return nil, groupReply{alone: true}
	}
	ctx := context.Background()
	if !g.loose {
		ctx = s.ends.context(g.end, s.Patience)
	}
	result := call.Cmd.firstTo(n).Send(ctx, s.Client, call.Keys, call.Args)
	if ctx.Err() != nil && outcome.IsContextError(result.Error()) {
		slots.Abandon()
		return nil, groupReply{err: result.Error(), sentIn: sentIn}
	}
	slots.Finish(slot)
	s.heard(n, sentIn, result)
	return s.grouping.read(result, sentIn, len(members))
}

// read returns the replies to so many commands of a group, or one outcome for all of them. If the
// server has refused the group, commands are sent alone for a while.
func (g *grouping) read(
	result rueidis.RedisResult, sentIn nodes.Generation, commands int,
) (replies []rueidis.RedisMessage, whole groupReply) {
	if err := result.NonRedisError(); err != nil {
		return nil, groupReply{err: err, sentIn: sentIn}
	}
	switch err := result.Error(); outcome.Classify(err) {
	case outcome.Refused:
		g.pause()
		return nil, groupReply{alone: true}
	case outcome.TryLater:
		return nil, groupReply{err: err, sentIn: sentIn}
	case outcome.Uncertain:
		g.pause() // a proxy may refuse groups, and nothing else
		return nil, groupReply{err: err, sentIn: nodes.NoGeneration}
	}
	if replies, _ = result.ToArray(); len(replies) != commands {
		g.pause()
		return nil, groupReply{err: errNoReplies, sentIn: nodes.NoGeneration}
	}
	return replies, groupReply{sentIn: sentIn}
}

// errNoReplies means that the reply to a group is not the replies to its members.
var errNoReplies = errors.New("latchkey: the server has not answered each command of a group")

// Settle returns when no command is in flight any more for a caller that has left its group, or
// when ctx ends. Such a command cannot be executed after one that is sent later.
func (s *Sender) Settle(ctx context.Context) {
	settled := s.grouping.whenSettled()
	if settled == nil {
		return
	}
	select {
	case <-settled:
	case <-ctx.Done():
	}
}
