package tests

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// The error for an invalid permit id or number of permits states the bounds, and nothing is sent.
func TestMessagesOfPermits(t *testing.T) {
	sendsNothing(t, func(client *latchkey.Client) {
		ctx, pool, budget := t.Context(), client.NewPermitSemaphore("pool"), client.NewSemaphore("budget")
		const (
			badID = `invalid permit id "nonsense", want lower-case hexadecimal digits, as Permit.ID and Holders return them`
			few   = "want at least 1 and at most 1000"
			every = "want at least 1 and at most 2147483647"
		)
		for want, err := range map[string]error{
			`release "pool": ` + badID:                                         firstOf(pool.Release(ctx, "nonsense")),
			`remaining lease "pool": ` + badID:                                 firstOf(pool.RemainingLease(ctx, "nonsense")),
			`set lease "pool": ` + badID:                                       pool.SetLease(ctx, "nonsense", defaultLease),
			`release "pool": no permit id`:                                     firstOf(pool.Release(ctx)),
			`acquire "pool": 2000 permits at once, ` + few:                     firstOf(pool.AcquireN(ctx, 2000)),
			`try acquire "pool": 0 permits at once, ` + few:                    firstOf(pool.TryAcquireN(ctx, 0)),
			`acquire "budget": 0 permits, ` + every:                            budget.AcquireN(ctx, 0),
			`release "budget": -1 permits, ` + every:                           budget.ReleaseN(ctx, -1),
			`set permits "budget": -1 permits, want at least 0`:                budget.SetPermits(ctx, -1),
			`add permits "pool": 0 permits to add, want a number other than 0`: pool.AddPermits(ctx, 0),
		} {
			want := "latchkey: " + strings.Replace(want, "\": ", "\": invalid argument: ", 1)
			require.ErrorIs(t, err, latchkey.ErrInvalid, want)
			assert.True(t, strings.HasPrefix(err.Error(), want), "%v, want %s", err, want)
		}
	})
}

// The error for an option or a number that a call cannot use names it, and says what is possible.
// Nothing is sent.
func TestMessagesOfOptions(t *testing.T) {
	sendsNothing(t, func(client *latchkey.Client) {
		ctx, lock, latch := t.Context(), client.NewLock("x"), client.NewCountDownLatch("x")
		const every = "want at least 1 and at most 2147483647"
		for want, err := range map[string]error{
			`await "x": 0 parties, ` + every:                                                               firstOf(client.NewBarrier("x", 0).Await(ctx)),
			`count down "x": count 0, ` + every:                                                            firstOf(latch.CountDownN(ctx, 0)),
			`await "x": AwaitSet and UnsetIsOpen cannot be used together`:                                  latch.Await(ctx, latchkey.AwaitSet(), latchkey.UnsetIsOpen()),
			`lock "x": AtLeast does not apply to read locks, MultiLocks, RedLocks, elections and a Once`:   firstOf(client.NewRWLock("x").Reader().Lock(ctx, latchkey.AtLeast(time.Second))),
			`try lock "x": As does not apply to a mutex, which is not re-entrant`:                          firstOf(client.NewMutex("x").TryLock(ctx, latchkey.As(client.NewOwner()))),
			`lock "x": Lease(NoExpiry) applies to permits only`:                                            firstOf(lock.Lock(ctx, latchkey.Lease(latchkey.NoExpiry))),
			`lock "x": the lease 87601h is not between 1ms and 10 years (87600h)`:                          firstOf(lock.Lock(ctx, latchkey.Lease(longestLease+time.Hour))),
			`lock "x": the lease 5m is shorter than AtLeast(1h)`:                                           firstOf(lock.Lock(ctx, latchkey.Lease(5*time.Minute), latchkey.AtLeast(time.Hour))),
			`lock "x": Backoff{Initial: 2s, Max: 1s, Multiplier: 2}, want Initial of at least 1ms, Max of`: firstOf(client.NewSpinLock("x", latchkey.Backoff{Initial: 2 * time.Second, Max: time.Second}).Lock(ctx)),
		} {
			want := "latchkey: " + strings.Replace(want, "\": ", "\": invalid argument: ", 1)
			require.ErrorIs(t, err, latchkey.ErrInvalid, want)
			assert.True(t, strings.HasPrefix(err.Error(), want), "%v, want %s", err, want)
		}
	})
	client := connect(t, rig.Shared(), latchkey.Options{Label: latchkey.NoLabel})
	_, err := client.NewLock("x").TryLock(t.Context(), latchkey.Note("why"))
	assert.EqualError(t, err, `latchkey: try lock "x": invalid argument: Note does not apply to a client with NoLabel`)
}

// An option that a call cannot use does not compile: the compiler refuses each marked line of the
// program for the option type that the mark names, and no other line.
func TestOptionsThatDoNotCompile(t *testing.T) {
	t.Parallel()
	const file = "testdata/options/main.go"
	source, err := os.ReadFile(file)
	require.NoError(t, err)
	want := map[string]string{} // the marks, by line
	for i, line := range strings.Split(string(source), "\n") {
		if _, mark, marked := strings.Cut(line, "// error: "); marked {
			want[fmt.Sprint(i+1)] = mark
		}
	}
	require.Greater(t, len(want), 20)
	output, err := exec.Command("go", "build", "-gcflags=-e", "-o", os.DevNull, "./"+file).CombinedOutput()
	require.Error(t, err, "it compiles")
	refused := regexp.MustCompile(`(?m)main\.go:(\d+):\d+: (.*)$`).FindAllStringSubmatch(string(output), -1)
	require.Len(t, refused, len(want), "%s", output)
	for _, each := range refused {
		assert.NotEmpty(t, want[each[1]], "line %s: %s", each[1], each[2])
		assert.Contains(t, each[2], want[each[1]], "line %s", each[1])
	}
}
