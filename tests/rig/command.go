package rig

import (
	"strings"
)

// Command is a command as a client sent it through a [Tap].
type Command struct {
	Conn int // number of the connection, counted from 1
	Args []string
}

// Name returns the command's first word in capitals.
func (c Command) Name() string { return strings.ToUpper(c.Args[0]) }

func (c Command) String() string {
	words := append([]string{c.Name()}, c.Args[1:]...)
	for i, word := range words {
		words[i] = shorten(word)
	}
	return strings.Join(words, " ")
}

// shorten keeps scripts from filling the messages of failed tests.
func shorten(word string) string {
	const most = 60
	if len(word) > most {
		return word[:most] + "…"
	}
	return word
}

// setup are the commands with which clients open, probe and close connections, and identify the
// server.
var setup = map[string]bool{
	"HELLO": true, "AUTH": true, "CLIENT": true, "PING": true, "SELECT": true,
	"CLUSTER": true, "PUBSUB": true, "COMMAND": true, "ROLE": true, "INFO": true, "QUIT": true,
}

// Subscribing matches the commands that turn their connection into one for messages.
func Subscribing(c Command) bool {
	switch c.Name() {
	case "SUBSCRIBE", "SSUBSCRIBE", "PSUBSCRIBE":
		return true
	}
	return false
}

// Commands returns the commands recorded so far, in the order of arrival.
func (t *Tap) Commands() []Command {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]Command(nil), t.commands...)
}

// Executed returns the matching commands that the server has answered without an error, in the
// order of the replies. Other recorded commands may still be in flight to the server.
func (t *Tap) Executed(match Match) (found []Command) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.executed {
		if match(c) {
			found = append(found, c)
		}
	}
	return found
}

// Forget empties the record.
func (t *Tap) Forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.commands, t.executed = nil, nil
}

func (t *Tap) answered(c Command) {
	if setup[c.Name()] {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.executed = append(t.executed, c)
}

// arrived records a command and finds the rule that applies to it. All connections go through here,
// so "the n-th command" is well defined.
func (t *Tap) arrived(c Command) Treatment {
	if err := c.misfit(); err != nil {
		t.tb.Errorf("rig: tap: %v", err)
	}
	isSetup := setup[c.Name()]
	t.mu.Lock()
	defer t.mu.Unlock()
	if !isSetup {
		t.commands = append(t.commands, c)
	}
	for _, r := range t.rules {
		if r.setup != isSetup {
			continue
		}
		if treatment, ok := r.judge(c); ok {
			return treatment
		}
	}
	return Treatment{}
}
