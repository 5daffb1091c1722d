package transport

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// mostGroupKeys and mostGroupArgs are the maximum numbers of keys and arguments of a command in a
// group.
const mostGroupKeys, mostGroupArgs = 3, 12

// GroupScript runs several commands in one script.
type GroupScript struct {
	texts   []string
	heads   [][mostGroupKeys + 1][mostGroupArgs + 1]string // by the number of a command, its keys and its arguments
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
// another. A number before the arguments of each says which script it is, and its numbers of keys
// and arguments. The reply is an array of their replies. A script that fails replies
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
  local run = scripts[(head - keys) / 100]
  local done, reply = pcall(run, {unpack(KEYS, k + 1, k + keys)}, {unpack(ARGV, a + 1, a + args)})
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

// groupLoad has the keys and arguments of a group's commands.
type groupLoad struct{ keys, args []string }

var groupLoads = sync.Pool{New: func() any { return new(groupLoad) }}

// fill fills in those of the members, and returns the command that sends them.
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

// head returns the number that says which script to run, and with how many keys and arguments.
func (g *GroupScript) head(m *groupMember) string {
	return g.heads[m.command.number][len(m.keys)][len(m.args)]
}
