package testredis

import (
	"fmt"
	"strconv"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// Entry is the content of a key.
type Entry struct {
	Kind   string
	TTL    int64
	Text   string
	Fields map[string]string // of a hash, or the scores of a sorted set
	List   []string          // of a list, or the members of a set or sorted set
}

var stateScript = transport.NewScript(`
local state = {}
for i, key in ipairs(KEYS) do
  local kind = redis.call('type', key)['ok']
  local content = {}
  if kind == 'hash' then
    content = redis.call('hgetall', key)
  elseif kind == 'string' then
    content = {redis.call('get', key)}
  elseif kind == 'list' then
    content = redis.call('lrange', key, 0, -1)
  elseif kind == 'set' then
    content = redis.call('smembers', key)
  elseif kind == 'zset' then
    content = redis.call('zrange', key, 0, -1, 'withscores')
  end
  state[i] = {kind, redis.call('pttl', key), content}
end
return state`)

// State reads keys.
func (s *Clocked) State(keys ...string) []Entry {
	reply, is := s.Run(stateScript, keys).([]any)
	if !is {
		panic(fmt.Sprint("testredis: the state cannot be read: ", reply))
	}
	entries := make([]Entry, len(reply))
	for i, each := range reply {
		parts := each.([]any)
		entries[i] = newEntry(parts[0].(string), parts[1].(int64), parts[2].([]any))
	}
	return entries
}

func newEntry(kind string, ttl int64, content []any) Entry {
	e := Entry{Kind: kind, TTL: ttl}
	for i, each := range content {
		text := each.(string)
		switch {
		case kind == "string":
			e.Text = text
		case kind != "hash" && kind != "zset":
			e.List = append(e.List, text)
		case i%2 == 0:
			e.List = append(e.List, text)
		default:
			if e.Fields == nil {
				e.Fields = map[string]string{}
			}
			e.Fields[e.List[i/2]] = text
		}
	}
	return e
}

// Count returns a number in a hash, 0 if there is none.
func (e Entry) Count(field string) int {
	n, _ := strconv.Atoi(e.Fields[field])
	return n
}
