package tests

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

const electionLease = time.Second

var electionOptions = latchkey.Options{Lease: electionLease, Tuning: latchkey.Tuning{StaleWaiterTimeout: electionLease}}

// register is a storage that leaders write to, as in docs/reference/election.md: it refuses a write
// after one with a larger term. It counts the writes and logs them in their order, the refused ones
// too; of equal writes in a row the log has one.
var register = rueidis.NewLuaScript(`
local term, writer = ARGV[1], ARGV[2]
local accepted = tonumber(term) >= tonumber(redis.call('hget', KEYS[1], 'term') or 0)
if accepted then
  redis.call('hset', KEYS[1], 'term', term)
end
redis.call('hincrby', KEYS[1], accepted and 'accepted' or 'refused', 1)
local entry = term .. (accepted and ' accepted ' or ' refused ') .. writer
if redis.call('lindex', KEYS[2], -1) ~= entry then
  redis.call('rpush', KEYS[2], entry)
end
return accepted and 1 or 0`)

func registerKey(name string) string    { return "register:{" + name + "}" }
func registerLogKey(name string) string { return "register log:{" + name + "}" }

// refusedInTerm counts writes that were refused although the leadership was valid when the reply
// arrived: there were two leaders at once.
const refusedInTerm = "refused in a term that lasts"

// registerWriter writes to the register of an election.
type registerWriter struct {
	raw         rueidis.Client
	name, value string
}

func (w registerWriter) write(ctx context.Context, term int64) (accepted bool, err error) {
	keys := []string{registerKey(w.name), registerLogKey(w.name)}
	n, err := register.Exec(ctx, w.raw, keys, []string{strconv.FormatInt(term, 10), w.value}).AsInt64()
	return n == 1, err
}

// lead writes until the leadership is over.
func (w registerWriter) lead(ctx context.Context, l *latchkey.Leadership) {
	for ctx.Err() == nil {
		accepted, err := w.write(ctx, l.Term())
		if err == nil && !accepted && l.Err() == nil {
			_ = w.raw.Do(ctx, w.raw.B().Hincrby().Key(registerKey(w.name)).Field(refusedInTerm).Increment(1).Build()).Error()
		}
		rest(5 * time.Millisecond)
	}
}

// writeLate writes once after the leadership is over, like a request that was delayed.
func (w registerWriter) writeLate(ctx context.Context, term int64) (accepted bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), soon)
	defer cancel()
	accepted, err = w.write(ctx, term)
	for err != nil && ctx.Err() == nil {
		rest(time.Millisecond)
		accepted, err = w.write(ctx, term)
	}
	return accepted, err
}

// candidate is a process that leads again and again, and writes to the register all the time. When
// a leadership is over, it prints the term, when it noticed that, whether the leadership was lost,
// and whether a late write was accepted. Its arguments: the name, its value, the server, and the
// address by which to reach it.
var candidate = rig.Child("candidate", func(ctx context.Context, args []string) error {
	name, value := args[0], args[1]
	server, err := rig.Attach(args[2])
	if err != nil {
		return err
	}
	raw, err := server.Client()
	if err != nil {
		return err
	}
	client, _, err := dial(server, args[3], electionOptions)
	if err != nil {
		return err
	}
	writer := registerWriter{raw, name, value}
	fmt.Println("campaigns")
	return client.NewElection(name).Run(ctx, value, func(ctx context.Context, l *latchkey.Leadership) error {
		writer.lead(ctx, l)
		noticed, lost := time.Now(), errors.Is(context.Cause(ctx), latchkey.ErrLost)
		accepted, err := writer.writeLate(ctx, l.Term())
		fmt.Println("ended", l.Term(), noticed.UnixNano(), lost, accepted)
		return err
	})
})

// ending is what a candidate prints about the end of a leadership.
type ending struct {
	noticed  time.Time
	lost     bool
	accepted bool // the late write
}

// endingOf waits until a candidate has printed how the term ended.
func endingOf(t *testing.T, p *rig.ChildProcess, term int64) ending {
	t.Helper()
	var e ending
	var nanos int64
	_, err := fmt.Sscan(p.Line(t, soon, fmt.Sprintf("ended %d ", term)), &nanos, &e.lost, &e.accepted)
	require.NoError(t, err)
	e.noticed = time.Unix(0, nanos)
	return e
}

// termWritten returns the term of the last accepted write.
func termWritten(admin *rig.Admin, name string) int64 {
	term, _ := strconv.ParseInt(admin.Text("HGET", registerKey(name), "term"), 10, 64) // 0: there is none
	return term
}

// checkRegister checks that terms never went back, that each term had one writer, and that no
// leader was refused in its term. It returns how many writes were accepted and refused.
func checkRegister(t *testing.T, admin *rig.Admin, name string) (accepted, refused string) {
	t.Helper()
	var newest int64
	writers := map[int64]string{}
	for _, entry := range admin.Strings("LRANGE", registerLogKey(name), "0", "-1") {
		fields := strings.SplitN(entry, " ", 3)
		term, err := strconv.ParseInt(fields[0], 10, 64)
		require.NoError(t, err)
		if fields[1] == "accepted" {
			assert.GreaterOrEqual(t, term, newest, "a write was accepted after one of a larger term")
			newest = max(newest, term)
		}
		if writer, known := writers[term]; known {
			assert.Equal(t, writer, fields[2], "two wrote in the term %d", term)
		}
		writers[term] = fields[2]
	}
	counts, err := admin.Do("HGETALL", registerKey(name)).AsStrMap()
	require.NoError(t, err)
	assert.NotContains(t, counts, refusedInTerm)
	return counts["accepted"], counts["refused"]
}
