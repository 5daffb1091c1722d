package rig

import (
	"slices"
	"strings"
	"sync"
)

// Loss is what happens to the reply of a command that was executed.
type Loss int

const (
	// Deliver loses nothing.
	Deliver Loss = iota
	// Cut discards the reply and closes the connection.
	Cut
	// Mute discards the reply and everything that the server sends on this connection later. The
	// connection stays open, and the client's commands are still executed.
	Mute
	// CutRequest closes the connection before the command reaches the server. It is the only loss
	// after which the command was certainly not executed.
	CutRequest
)

// Treatment is what a [Tap] does to one command. The zero value passes it on.
type Treatment struct {
	// Before, if set, holds the command, and what follows on its connection, until
	// the channel closes.
	Before <-chan struct{}
	// After, if set, holds the reply, and what follows on its connection, until the
	// channel closes.
	After <-chan struct{}
	// Answer, if set, is sent to the client as an error instead of sending the command to the
	// server.
	Answer string
	// Instead, if set, is sent to the client as an error in place of the reply to the command,
	// which is executed.
	Instead string
	// Lose says what happens to the reply.
	Lose Loss

	reached func() // called when the treatment takes effect, if set
}

func (t Treatment) takesEffect() {
	if t.reached != nil {
		t.reached()
	}
}

// Match selects commands.
type Match func(Command) bool

// Any matches every command.
func Any(Command) bool { return true }

// Named matches the commands with one of these names.
func Named(names ...string) Match {
	return func(c Command) bool {
		for _, name := range names {
			if c.Name() == name {
				return true
			}
		}
		return false
	}
}

// MentionsPrefix matches the commands that have an argument with this prefix.
func MentionsPrefix(prefix string) Match {
	return func(c Command) bool {
		return slices.ContainsFunc(c.Args, func(w string) bool { return strings.HasPrefix(w, prefix) })
	}
}

// Mentions matches the commands that have this word among their arguments.
func Mentions(word string) Match {
	return func(c Command) bool {
		for _, arg := range c.Args {
			if arg == word {
				return true
			}
		}
		return false
	}
}

// Both matches the commands that both a and b match.
func Both(a, b Match) Match { return func(c Command) bool { return a(c) && b(c) } }

// rule selects the treatment of commands. It is used under the lock of its tap.
type rule struct {
	match     Match
	setup     bool // it is for the commands that a tap does not record
	skip      int  // this many matching commands pass first
	left      int  // this many are then treated; negative: all
	treatment func(Command) Treatment
}

func (r *rule) judge(c Command) (Treatment, bool) {
	if r.left == 0 || !r.match(c) {
		return Treatment{}, false
	}
	if r.skip > 0 {
		r.skip--
		return Treatment{}, false
	}
	r.left--
	return r.treatment(c), true
}

func (t *Tap) addRule(r *rule) (remove func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rules = append(t.rules, r)
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		r.left = 0
	}
}

// Lose loses the reply to the n-th matching command from now on, counted from 1 over all
// connections. The channel delivers the command when its reply is discarded: the command has then
// been executed (except with CutRequest).
func (t *Tap) Lose(n int, match Match, loss Loss) <-chan Command {
	hit := make(chan Command, 1)
	t.addRule(&rule{match: match, skip: n - 1, left: 1, treatment: func(c Command) Treatment {
		return Treatment{Lose: loss, reached: func() { hit <- c }}
	}})
	return hit
}

// LoseAll loses the reply to every matching command until stop is called.
func (t *Tap) LoseAll(match Match, loss Loss) (stop func()) {
	return t.addRule(&rule{match: match, left: -1, treatment: func(Command) Treatment {
		return Treatment{Lose: loss}
	}})
}

// Refuse answers every matching command with an error such as "LOADING try later", without sending
// it to the server, until stop is called.
func (t *Tap) Refuse(match Match, text string) (stop func()) {
	return t.addRule(&rule{match: match, left: -1, treatment: func(Command) Treatment {
		return Treatment{Answer: text}
	}})
}

// RefuseGreetings answers the first command on each new connection with an error, until stop is
// called.
func (t *Tap) RefuseGreetings(text string) (stop func()) {
	return t.addRule(&rule{match: Named("HELLO"), setup: true, left: -1, treatment: func(Command) Treatment {
		return Treatment{Answer: text}
	}})
}

// Replace lets the next matching command be executed, and answers it with an error.
func (t *Tap) Replace(match Match, text string) {
	t.addRule(&rule{match: match, left: 1, treatment: func(Command) Treatment { return Treatment{Instead: text} }})
}

// Held is a command or a reply that a tap holds back.
type Held struct {
	// Arrived delivers the first command that is held, or whose reply is held.
	Arrived <-chan Command

	release chan struct{}
	once    sync.Once
}

// Release releases what is held, and lets what would be held later pass.
func (h *Held) Release() { h.once.Do(func() { close(h.release) }) }

// HoldCommand keeps the next matching command from the server until it is released. Other
// connections are not delayed.
func (t *Tap) HoldCommand(match Match) *Held { return t.HoldNthCommand(1, match) }

// HoldNthCommand does so with the n-th matching command, counted from 1.
func (t *Tap) HoldNthCommand(n int, match Match) *Held {
	return t.hold(match, n-1, 1, func(gate <-chan struct{}) Treatment { return Treatment{Before: gate} })
}

// HoldNthReply lets the n-th matching command be executed and holds its reply.
func (t *Tap) HoldNthReply(n int, match Match) *Held { return t.hold(match, n-1, 1, afterwards) }

// HoldReply lets the next matching command be executed and holds its reply until it is released.
func (t *Tap) HoldReply(match Match) *Held { return t.HoldNthReply(1, match) }

// HoldReplies holds the replies to all matching commands. The reply to a retry on another
// connection is held as well.
func (t *Tap) HoldReplies(match Match) *Held { return t.hold(match, 0, -1, afterwards) }

func afterwards(gate <-chan struct{}) Treatment { return Treatment{After: gate} }

func (t *Tap) hold(match Match, skip, left int, how func(gate <-chan struct{}) Treatment) *Held {
	arrived := make(chan Command, 1)
	h := &Held{Arrived: arrived, release: make(chan struct{})}
	t.addRule(&rule{match: match, skip: skip, left: left, treatment: func(c Command) Treatment {
		treatment := how(h.release)
		treatment.reached = func() {
			select {
			case arrived <- c:
			default: // not the first
			}
		}
		return treatment
	}})
	return h
}
