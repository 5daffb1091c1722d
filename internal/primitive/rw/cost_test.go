package rw_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/primitive/rw"
	"github.com/latchkey-go/latchkey/internal/testredis"
	"github.com/latchkey-go/latchkey/internal/transport"
	"github.com/latchkey-go/latchkey/lua"
)

// rwCosts counts the commands that the scripts of a read/write lock call.
type rwCosts struct {
	rwScripts

	counter string
}

// costs checks that a script calls at most that many commands, and returns its reply.
func (s rwCosts) costs(most int, what, script string, keys []string, args ...string) any {
	s.t.Helper()
	const count = `local calls = table.remove(ARGV)
local function countedCall(...) redis.call('incr', calls) return redis.call(...) end
local function triedCall(...) redis.call('incr', calls) return redis.pcall(...) end
`
	text := strings.NewReplacer("redis.call(", "countedCall(", "redis.pcall(", "triedCall(").Replace(lua.Text(script))
	s.do("SET", s.counter, "0")
	reply := testredis.RunScript(s.c, transport.NewScript(count+text), keys, append(args, s.counter)...)

	calls, err := s.do("GET", s.counter).AsInt64()
	require.NoError(s.t, err)
	require.LessOrEqual(s.t, calls, int64(most), what)
	return reply
}

func (s rwCosts) read(most int, what, owner string) any {
	s.t.Helper()
	return s.left(s.costs(most, what, "rw/read_acquire", append(rw.Keys(s.keys.Key), rw.LeaseKeys(s.keys.Key, owner)+"1"),
		owner, "30000", "1", "", "1", "60000"))
}

func (s rwCosts) unread(most int, what, owner string) any {
	s.t.Helper()
	return s.costs(most, what, "rw/read_release", append(s.withQueue(), rw.LeaseKeys(s.keys.Key, owner)+"1"),
		append([]string{owner, "0", ""}, s.unreadArgs()...)...)
}

func (s rwCosts) write(most int, what, owner string) any {
	s.t.Helper()
	return s.left(s.costs(most, what, "rw/write_acquire", rw.Keys(s.keys.Key), s.writeArgs(owner, "30000", 1, "60000")...))
}

func (s rwCosts) unwrite(most int, what, owner string, waited bool) any {
	s.t.Helper()
	waiting := strconv.Itoa(map[bool]int{true: 1}[waited])
	return s.costs(most, what, "rw/write_release", s.withQueue(), s.unwriteArgs(owner, 0, waiting, "", "")...)
}

func (s rwCosts) renew(most int, what, owner, side string, reads int) any {
	s.t.Helper()
	keys := rw.AppendLeaseKeys(rw.Keys(s.keys.Key)[:2:2], s.keys.Key, owner, reads)
	return s.costs(most, what, "rw/renew", keys, owner, side, "", "40000", strconv.Itoa(reads))
}

// The scripts cost what their headers say.
func TestRWScripts_costs(t *testing.T) {
	s := rwCosts{newRWScripts(t), ""}
	s.counter = s.keys.Key + ":calls"
	d := ownerA[:len(ownerA)-1] + "99"

	require.Nil(t, s.read(10, "read, a free lock", ownerA))
	require.Nil(t, s.read(12, "read, beside others", ownerB))
	require.Equal(t, []any{int64(1)}, s.renew(10, "renew a reader", ownerB, "read", 1))
	require.IsType(t, int64(0), s.write(16, "write, refused", ownerC))
	require.IsType(t, int64(0), s.write(6, "write, refused again", ownerC))
	require.IsType(t, int64(0), s.read(8, "read, kept out", d))
	require.IsType(t, int64(0), s.read(5, "read, kept out again", d))
	require.Equal(t, "HELD", s.unread(5, "stop to read, beside others", ownerA))
	require.Nil(t, s.unread(3, "undo of a read, beside others", ownerA))
	require.Equal(t, int64(0), s.unread(10, "stop to read, a writer waits", ownerB))
	require.Nil(t, s.write(11, "write, after a wait", ownerC))
	require.IsType(t, int64(0), s.read(4, "read, refused again", d))
	require.IsType(t, int64(0), s.write(15, "write, refused", d))
	require.Equal(t, int64(0), s.unwrite(11, "stop to write, others wait", ownerC, true))
	require.Nil(t, s.unwrite(10, "stop to wait", d, true))
	s.do("DEL", rw.Keys(s.keys.Key)[3]) // the turn of the readers

	require.Nil(t, s.write(10, "write, a free lock", ownerC))
	require.Equal(t, []any{int64(1)}, s.renew(8, "renew a writer", ownerC, "write", 0))
	require.Equal(t, int64(0), s.unwrite(5, "stop to write, nobody waits", ownerC, false))
	require.Nil(t, s.unwrite(4, "undo of a write, nothing there", d, false))
	require.Nil(t, s.read(10, "read, a free lock", ownerA))
	require.Equal(t, int64(0), s.unread(6, "stop to read, nobody waits", ownerA))
	require.Nil(t, s.unread(4, "undo of a read, nothing there", ownerA))

	require.Nil(t, s.write(10, "write, a free lock", ownerC))
	require.Equal(t, int64(0), s.costs(27, "downgrade", "rw/downgrade",
		append(rw.Keys(s.keys.Key), rw.LeaseKeys(s.keys.Key, ownerC)+"1"),
		ownerC, "30000", "1", "8", "PUBLISH", rw.Channel(s.keys.Key), line.PresenceChannel(s.keys.Key)))
	require.Nil(t, s.read(13, "read, beside others", ownerA))
	require.Equal(t, "OK", s.costs(12, "evict one of two", "rw/evict", s.withQueue(), append(s.evictArgs(), ownerA)...))
	require.Equal(t, "OK", s.costs(11, "evict the only one", "rw/evict", s.withQueue(), append(s.evictArgs(), ownerC)...))

	require.Nil(t, s.write(10, "write, a free lock", ownerC))
	require.Equal(t, int64(0), s.costs(20, "stop to write, the lock stays taken", "rw/write_release", s.withQueue(),
		append(s.unwriteArgs(ownerC, 0, "0", "", ""), "20000")...))
}
