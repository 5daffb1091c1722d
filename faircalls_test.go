package latchkey

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// calls executes a script and returns its reply and the commands that it has called.
func (s fairScripts) calls(cmd transport.Command, keys []string, args ...string) (reply any, commands []string) {
	s.t.Helper()
	const before = `local commands, server = {}, redis
		local function counted(call)
		  return function(command, ...)
		    table.insert(commands, command)
		    return call(command, ...)
		  end
		end
		local redis = setmetatable({call = counted(server.call), pcall = counted(server.pcall)}, {__index = server})
		local function script() `
	both, is := s.c.script(transport.NewScript(before+cmd.Text+" end return {script() or false, commands}"), keys, args...).([]any)
	require.True(s.t, is)
	for _, command := range both[1].([]any) {
		commands = append(commands, command.(string))
	}
	return both[0], commands
}

// What an acquisition in turn costs inside the server does not creep up unnoticed.
func TestFairScripts_commands(t *testing.T) {
	s := newFairScripts(t)
	k := s.keys.fairKeys()
	acquire := func(most int, owner, ticket string) any {
		t.Helper()
		reply, commands := s.calls(fairAcquire, k, owner, "30000", "1", "", "", "PUBLISH", s.keys.waiterChannel(""), s.stale, ticket, "300000")
		require.LessOrEqual(t, len(commands), most, "%v", commands)
		return reply
	}
	acquire(4, ownerA, "")
	ticket := acquire(10, ownerB, "").([]any)[1].(string)
	acquire(9, ownerC, "")
	acquire(10, ownerB, ticket)
	_, commands := s.calls(fairRelease, k, ownerA, "0", "", "PUBLISH", s.keys.channel, "0", "0", s.stale)
	require.LessOrEqual(t, len(commands), 6, "%v", commands)
	acquire(9, ownerB, ticket)
}
