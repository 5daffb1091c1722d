package transport

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// mostGroupArgs is the maximum number of arguments of a command in a group.
const mostGroupArgs = 12

// GroupScript runs several commands in one script.
type GroupScript struct {
	texts   []string
	once    sync.Once
	command Command
}

// Add returns a script, or the plain SET NX PX, as a command that may be grouped with others that
// were added. Call Add for all of them before anything is sent.
func (g *GroupScript) Add(c Command) Command {
	text := c.Text
	if text == "" {
		text = `return redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])`
	}
	g.texts = append(g.texts, text)
	c.together, c.number = g, len(g.texts)
	return c
}

// get returns the command that runs a group. KEYS and ARGV are those of its commands, one after
// another. Before the arguments of each are the number of its script, and its numbers of keys and
// arguments. The reply is an array of their replies. A script that fails replies
// LATCHKEY_ALONE.
func (g *GroupScript) get() Command {
	g.once.Do(func() {
		var b strings.Builder
		b.WriteString("local scripts = {")
		for _, text := range g.texts {
			fmt.Fprintf(&b, "function(KEYS, ARGV)\n%s\nend,", text)
		}
		b.WriteString(runGroup)
		g.command = NewScript(b.String())
	})
	return g.command
}

const runGroup = `}
local tonumber, unpack, pcall = tonumber, unpack, pcall
local replies, n, k, a = {}, 0, 0, 1
while ARGV[a] do
  local run, keys, args = scripts[tonumber(ARGV[a])], tonumber(ARGV[a + 1]), tonumber(ARGV[a + 2])
  local done, reply = pcall(run, {unpack(KEYS, k + 1, k + keys)}, {unpack(ARGV, a + 3, a + 2 + args)})
  if not done then
    reply = {err = 'LATCHKEY_ALONE'}
  end
  n = n + 1
  replies[n] = reply or false
  k = k + keys
  a = a + 3 + args
end
return replies
`

// load returns the call that sends those of the members.
func (g *GroupScript) load(members []*groupMember) Call {
	cmd := g.get()
	keys, args := make([]string, 0, 3*len(members)), make([]string, 0, (3+mostGroupArgs)*len(members))
	for _, m := range members {
		c := &m.call
		cmd.reserved = cmd.reserved || c.Cmd.reserved
		keys = append(keys, c.Keys...)
		args = append(args, strconv.Itoa(c.Cmd.number), strconv.Itoa(len(c.Keys)), strconv.Itoa(len(c.Args)))
		args = append(args, c.Args...)
	}
	return Call{cmd, keys, args}
}
