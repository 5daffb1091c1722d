package inbox

import (
	"strconv"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/internal/engine/script"
)

// Message implements [pubsub.Subscriber]. The messages are
//
//	grant <kind> <owner> <token>@<score of its entry> <key>   the owner has the lock
//	call <permits> <operation> <key>                          so many permits are kept for the operation
//	ask <ms> <owner or operation> <key>                       it is to query the server after that time
func (c *channel) Message(text string) {
	what, rest, _ := strings.Cut(text, " ")
	first, rest, _ := strings.Cut(rest, " ")
	name, rest, _ := strings.Cut(rest, " ")
	to := c.find(name)
	switch what {
	case "grant":
		what, key, _ := strings.Cut(rest, " ")
		token, since, _ := strings.Cut(what, "@")
		n, _ := strconv.ParseInt(token, 10, 64)
		if to == nil || !to.Granted(n, since) {
			c.unwanted(first, key, name)
		}
	case "call":
		if to == nil {
			c.unwanted(Calls, rest, name+" "+first)
			return
		}
		to.Query()
	case "ask":
		ms, _ := strconv.ParseInt(first, 10, 64)
		if to != nil {
			time.AfterFunc(script.FromMillis(ms), to.Query)
		}
	}
}

// find returns who waits under a name, or nil.
func (c *channel) find(name string) Recipient {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waiting[name]
}

// Calls is the kind, for Register, of permits that a call message keeps for an operation.
const Calls = "call"

// Register sets what is done if the server has given a lock, or offered something, to a name that
// nobody waits under. kind is the letter by which grants name the kind of lock, or [Calls]. For a
// call, the function gets the entry of the name.
func (b *Inbox) Register(kind string, giveBack func(key, name string)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.giveBack[kind] = giveBack
}

// unwanted gives back what a name got that nobody waits under.
func (b *Inbox) unwanted(kind, key, name string) {
	b.mu.Lock()
	giveBack := b.giveBack[kind]
	b.mu.Unlock()
	if giveBack != nil {
		giveBack(key, name)
	}
}

// Unclaimed handles a message on a channel of this client to which nobody listens any more. The
// server still counts the client as listening there, so it may grant a lock to a poller, or to an
// owner whose entry was left behind.
func (b *Inbox) Unclaimed(name, text string) {
	if !strings.HasPrefix(name, "latchkey:") || !strings.Contains(name, b.config.Client) {
		return
	}
	b.mu.Lock()
	c := b.channels[name]
	b.mu.Unlock()
	if c == nil {
		c = &channel{Inbox: b, name: name}
	}
	c.Message(text)
}
