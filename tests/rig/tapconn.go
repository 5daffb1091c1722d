package rig

import (
	"bufio"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
)

// tapConn is one connection through a [Tap]: one goroutine moves the commands, another the replies,
// and a queue of commands in flight assigns each reply to its command.
type tapConn struct {
	id               int
	tap              *Tap
	client, upstream net.Conn
	done             chan struct{}
	closing          sync.Once
	subscriber       atomic.Bool
	frozen           atomic.Bool
	muted            bool // used by moveReplies only

	mu       sync.Mutex // guards inFlight and writing to the client
	inFlight []*flight
}

// flight is a command whose reply is not complete yet.
type flight struct {
	command   Command
	treatment Treatment
	// A subscription is confirmed once for each channel, by notices of this kind.
	notice   string
	expected int // 0: as many as the connection has channels, at least one
	got      int
}

func newTapConn(t *Tap, client, upstream net.Conn) *tapConn {
	return &tapConn{tap: t, client: client, upstream: upstream, done: make(chan struct{})}
}

func (c *tapConn) close() {
	c.closing.Do(func() {
		close(c.done)
		_ = c.client.Close()
		_ = c.upstream.Close()
		c.tap.remove(c)
	})
}

// await waits for release. It fails if the connection ends first, because what was held must then
// not be moved on.
func (c *tapConn) await(release <-chan struct{}) error {
	select {
	case <-release:
		return nil
	case <-c.done:
		return errCut
	}
}

// thaw blocks on a frozen connection until that closes.
func (c *tapConn) thaw() {
	if c.frozen.Load() {
		<-c.done
	}
}

// moveCommands passes on what the client sends, until the connection ends.
func (c *tapConn) moveCommands() {
	defer c.close()
	r := bufio.NewReader(c.client)
	for {
		v, err := readValue(r)
		if err != nil || len(v.elems) == 0 {
			return
		}
		c.thaw()
		command := Command{Conn: c.id, Args: v.words()}
		if Subscribing(command) {
			c.subscriber.Store(true)
		}
		if c.pass(v, newFlight(command, c.tap.arrived(command))) != nil {
			return
		}
	}
}

// errCut ends a connection on purpose.
var errCut = errors.New("cut by the tap")

// pass sends a command on, or applies its treatment instead.
func (c *tapConn) pass(v value, f *flight) error {
	switch {
	case f.treatment.Lose == CutRequest:
		c.close()
		f.treatment.takesEffect()
		return errCut
	case f.treatment.Before != nil:
		f.treatment.takesEffect()
		if err := c.await(f.treatment.Before); err != nil {
			return err
		}
	}
	if err := c.launch(f); err != nil || f.treatment.Answer != "" {
		return err
	}
	_, err := c.upstream.Write(v.raw)
	return err
}

func newFlight(c Command, t Treatment) *flight {
	f := &flight{command: c, treatment: t, expected: 1}
	if word := strings.ToLower(c.Name()); isSubscription(word) {
		f.notice = word
		f.expected = len(c.Args) - 1
	}
	return f
}

// launch queues a command. If the tap itself answers the command and nothing is queued before it,
// launch sends that reply at once.
func (c *tapConn) launch(f *flight) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inFlight = append(c.inFlight, f)
	return c.answer()
}

// answer sends the tap's own replies that are next in the queue.
func (c *tapConn) answer() error {
	for len(c.inFlight) > 0 && c.inFlight[0].treatment.Answer != "" {
		f := c.inFlight[0]
		c.inFlight = c.inFlight[1:]
		if _, err := c.client.Write([]byte("-" + f.treatment.Answer + "\r\n")); err != nil {
			return err
		}
		f.treatment.takesEffect()
	}
	return nil
}

// moveReplies passes on what the server sends, until the connection ends.
func (c *tapConn) moveReplies() {
	defer c.close()
	r := bufio.NewReader(c.upstream)
	for {
		v, err := readValue(r)
		if err != nil {
			return
		}
		c.thaw()
		if c.reply(v) != nil {
			return
		}
	}
}

// reply delivers a value to the client, unless the tap drops or loses it.
func (c *tapConn) reply(v value) error {
	notice := v.notice(c.subscriber.Load())
	if isMessage(notice) && c.tap.drops() {
		return nil
	}
	f := c.answered(notice)
	if f != nil && f.got == 1 { // a subscription's first confirmation stands for all
		if err := c.treat(f.treatment); err != nil {
			return err
		}
	}
	return c.deliver(v, f)
}

// answered returns the command that a value answers, or nil for a message or another notice that
// answers no command.
func (c *tapConn) answered(notice string) *flight {
	c.mu.Lock()
	defer c.mu.Unlock()
	if notice != "" && !isSubscription(notice) {
		return nil
	}
	c.dropOpenEnded(notice)
	if len(c.inFlight) == 0 || (notice != "" && c.inFlight[0].notice != notice) {
		return nil
	}
	c.inFlight[0].got++
	return c.inFlight[0]
}

// dropOpenEnded removes an UNSUBSCRIBE of all channels from the queue. Only the next reply of
// another kind shows that it is complete.
func (c *tapConn) dropOpenEnded(notice string) {
	for len(c.inFlight) > 0 {
		f := c.inFlight[0]
		if f.expected > 0 || f.got == 0 || f.notice == notice {
			return
		}
		c.inFlight = c.inFlight[1:]
	}
}

// treat applies a treatment to a reply. It may wait, so it holds no lock. The command stays in the
// queue, so that nothing overtakes the reply.
func (c *tapConn) treat(t Treatment) error {
	if t.After != nil {
		t.takesEffect()
		if err := c.await(t.After); err != nil {
			return err
		}
	}
	switch t.Lose {
	case Cut:
		c.close()
		t.takesEffect()
		return errCut
	case Mute:
		c.muted = true
		t.takesEffect()
	}
	return nil
}

// deliver writes a value to the client, and removes its command from the queue if the value
// completes the reply. An error reply also completes a subscription. The command is recorded before
// the client receives the reply.
func (c *tapConn) deliver(v value, f *flight) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := f != nil && (f.notice == "" || f.got == f.expected || v.kind == '-')
	if last && v.kind != '-' {
		c.tap.answered(f.command)
	}
	if f != nil && f.treatment.Instead != "" {
		v.raw = []byte("-" + f.treatment.Instead + "\r\n")
	}
	if !c.muted {
		if _, err := c.client.Write(v.raw); err != nil {
			return err
		}
	}
	if last {
		c.inFlight = c.inFlight[1:]
	}
	if c.muted {
		return nil
	}
	return c.answer()
}
