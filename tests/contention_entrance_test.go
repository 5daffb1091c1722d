package tests

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// entrance detects in any process that too many are inside at once, even if some are killed inside:
// each visitor records those it finds. A visit that is left behind expires with its hold, so that a
// process that was suspended for longer is not mistaken for a fault.
type entrance struct {
	raw       rueidis.Client
	name, who string
}

func (e entrance) inside() string { return "inside:{" + e.name + "}" }
func (e entrance) found() string  { return "found:{" + e.name + "}" }

// entering adds a visitor with its weight and records who was inside if the total weight is too
// large. A visitor whose time is over when the command arrives is not added: the machine was busy,
// and somebody else may have the lock.
var entering = rueidis.NewLuaScript(`
local time = redis.call('time')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('zremrangebyscore', KEYS[1], '-inf', now)
if now >= tonumber(ARGV[2]) then
  return 0
end
local before, weight = redis.call('zrange', KEYS[1], 0, -1), tonumber(ARGV[3])
for _, each in ipairs(before) do
  weight = weight + string.match(each, ' (%d+) ')
end
if weight > tonumber(ARGV[4]) then
  for _, each in ipairs(before) do
    redis.call('rpush', KEYS[2], (string.match(each, '^(.*) %d+ ')))
  end
end
redis.call('zadd', KEYS[1], ARGV[2], ARGV[1])
return 1`)

// pass enters and leaves with something that is valid for the given time, or for ever if that is 0.
func (e entrance) pass(ctx context.Context, weight int32, valid time.Duration) error {
	if valid == 0 {
		valid = time.Hour
	}
	visit, ends := fmt.Sprint(e.who, " ", weight, " ", rand.Int()), time.Now().Add(valid) // the server has the same clock
	err := entering.Exec(ctx, e.raw, []string{e.inside(), e.found()},
		[]string{visit, strconv.FormatInt(ends.UnixMilli(), 10), strconv.Itoa(int(weight)), strconv.Itoa(whole)}).Error()
	if err != nil {
		return err
	}
	return e.raw.Do(ctx, e.raw.B().Zrem().Key(e.inside()).Member(visit).Build()).Error()
}

// verify fails the test if somebody was found inside who was not killed there.
func (e entrance) verify(t *testing.T, killed []string) {
	t.Helper()
	found, err := e.raw.Do(t.Context(), e.raw.B().Lrange().Key(e.found()).Start(0).Stop(-1).Build()).AsStrSlice()
	require.NoError(t, err)
	found = slices.DeleteFunc(found, func(who string) bool { return slices.Contains(killed, who) })
	assert.Empty(t, found, "these were inside when somebody else entered")
}

// guarded makes a role pass through the entrance with what it acquires.
func (e entrance) guarded(r role) role {
	inner := r.acquire
	r.acquire = func(ctx context.Context) (taken, error) {
		got, err := inner(ctx)
		if err != nil {
			return got, err
		}
		if err := e.pass(ctx, r.weight, got.valid); err != nil {
			return got, errors.Join(err, got.release(ctx))
		}
		return got, nil
	}
	return r
}
