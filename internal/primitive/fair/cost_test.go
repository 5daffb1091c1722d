package fair_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// calls executes a script and returns its reply and the commands that the script called.
func (s fairScripts) calls(c script.Call) (reply any, commands []string) {
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
	c.Cmd = transport.NewScript(before + c.Cmd.Text + " end return {script() or false, commands}")
	both, is := s.once(c).([]any)
	require.True(s.t, is)
	for _, command := range both[1].([]any) {
		commands = append(commands, command.(string))
	}
	return both[0], commands
}

// The number of commands of an acquisition in turn does not grow unnoticed.
func TestFairScripts_commands(t *testing.T) {
	s := newFairScripts(t)
	acquire := func(most int, owner, ticket string) any {
		t.Helper()
		reply, commands := s.calls(s.acquireCall(owner, "1", s.stale, ticket))
		require.LessOrEqual(t, len(commands), most, "%v", commands)
		return reply
	}
	release := func(most int, owner string) {
		t.Helper()
		_, commands := s.calls(s.releaseCall(owner, 0, "0"))
		require.LessOrEqual(t, len(commands), most, "%v", commands)
	}
	acquire(4, ownerA, "")
	ticket := acquire(11, ownerB, "").([]any)[1].(string)
	acquire(10, ownerC, "")
	acquire(11, ownerB, ticket)
	release(6, ownerA)
	acquire(8, ownerB, ticket)
	release(6, ownerB)
	s.once(s.releaseCall(ownerC, 0, "1"))
	acquire(4, ownerA, "")
	release(4, ownerA)
}
