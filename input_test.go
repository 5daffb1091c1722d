package latchkey

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/primitive/lock"
	"github.com/latchkey-go/latchkey/internal/testredis"
)

func TestOptions_are_checked_against_each_other(t *testing.T) {
	require.NoError(t, Options{}.withDefaults().check())
	require.NoError(t, Options{Lease: 20 * time.Millisecond}.withDefaults().check(), "the defaults adapt to a short lease")
	longest := Options{Tuning: Tuning{StaleWaiterTimeout: longestStale, RedissonFairWait: longestRedissonWait}}
	require.NoError(t, longest.withDefaults().check(), "the bounds themselves are accepted")
	for text, o := range map[string]Options{
		"Lease":         {Lease: -1},
		"sub-ms lease":  {Lease: 999 * time.Microsecond},
		"poll":          {Lease: time.Second, Tuning: Tuning{PollCeiling: time.Second}},
		"retry":         {Lease: time.Second, RetryBudget: 2 * time.Second},
		"negative poll": {Tuning: Tuning{PollCeiling: -time.Second}},
		"in flight":     {Tuning: Tuning{MaxInFlight: 100000}},
		"two mappings":  {KeyPrefix: "a", NameMapper: strings.ToUpper},
		"stale":         {Tuning: Tuning{StaleWaiterTimeout: -1}},
		"never stale":   {Tuning: Tuning{StaleWaiterTimeout: longestStale + 1}},
		"fair wait":     {Tuning: Tuning{RedissonFairWait: -1}},
		"long fair":     {Tuning: Tuning{RedissonFairWait: longestRedissonWait + 1}},
	} {
		require.ErrorIs(t, o.withDefaults().check(), ErrInvalid, text)
	}
}

// The tests of the inside use the settings that a client has without options.
func TestSettings_of_tests(t *testing.T) {
	ours, theirs := Options{}.withDefaults().config(), testredis.NewSettings().Config
	require.Nil(t, ours.Confirmation("client", 1))
	ours.Confirmation, theirs.Confirmation = nil, nil
	ours.Label, theirs.Label = "", ""
	require.Equal(t, ours, theirs)
}

func TestRequests(t *testing.T) {
	for text, options := range map[string][]LockOption{
		"zero lease":      {Lease(0)},
		"negative lease":  {Lease(-time.Second)},
		"a bare number":   {Lease(30)},
		"beyond range":    {Lease(1<<63 - 1)},
		"negative wait":   {Wait(-1)},
		"zero limit":      {MaxHold(0)},
		"no owner":        {As(Owner{})},
		"zero least":      {AtLeast(0)},
		"lease too short": {Lease(time.Second), AtLeast(2 * time.Second)},
		"limit too short": {AtLeast(2 * time.Second), MaxHold(time.Second)},
		"no option":       {nil},
		"no wait":         {Wait(0)},
		"lease too long":  {Lease(2 * time.Second), MaxHold(time.Second)},
		"the other order": {MaxHold(time.Second), Lease(2 * time.Second)},
	} {
		_, err := request.New(time.Minute, 0, true, settingsOf(options))
		require.ErrorIs(t, err, ErrInvalid, text)
	}
	r, err := request.New(time.Minute, 0, true, settingsOf([]LockOption{Wait(time.Second), MaxHold(time.Second)}))
	require.NoError(t, err)
	require.True(t, r.Waits && r.Renew)
	require.Equal(t, time.Second, r.Lease, "the first lease does not pass the limit")
	r, err = request.New(time.Minute, 0, true, settingsOf([]LockOption{AtLeast(time.Hour), MaxHold(2 * time.Hour)}))
	require.NoError(t, err)
	require.Equal(t, time.Hour, r.Lease, "the first lease outlives a crash")
	require.Equal(t, time.Minute, r.RenewLease)
}

func TestOwner_survives_printing(t *testing.T) {
	const ownerA = testredis.OwnerA
	o := Owner(identity.New(ownerA[:36], 7))
	require.Equal(t, ownerA, o.String())
	parsed, err := ParseOwner(o.String())
	require.NoError(t, err)
	require.Equal(t, o, parsed)
	require.Empty(t, Owner{}.String())
	for _, text := range []string{"", "x", "x:1", ownerA[:36], ownerA[:36] + ":", ownerA[:36] + ":-1", ownerA[:36] + ":01",
		ownerA + ":write", strings.ToUpper(testredis.Guest1[:35]) + "A:1", "{" + ownerA[:36] + "}:7"} {
		_, err := ParseOwner(text)
		require.ErrorIs(t, err, ErrInvalid, text)
	}
}

func TestBackoff(t *testing.T) {
	b := Backoff{}.withDefaults()
	require.NoError(t, b.check())
	for round, ms := range []int{1, 2, 4, 8, 16, 32, 64, 128, 128, 128} {
		longest := time.Duration(ms) * time.Millisecond
		pause := lock.Backoff(b).Pause(round)
		require.LessOrEqual(t, pause, longest)
		require.GreaterOrEqual(t, pause, longest/2)
	}
	require.LessOrEqual(t, lock.Backoff(b).Pause(1<<30), 128*time.Millisecond)
	constant := Backoff{Initial: 64 * time.Millisecond, Multiplier: 1}.withDefaults()
	require.GreaterOrEqual(t, lock.Backoff(constant).Pause(1<<40), 32*time.Millisecond)
	for _, bad := range []Backoff{{Initial: -1}, {Initial: time.Microsecond}, {Initial: time.Second, Max: time.Millisecond}, {Multiplier: 0.5}} {
		require.ErrorIs(t, bad.withDefaults().check(), ErrInvalid)
	}
}
