package tests

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// A user that lacks a single command: what fails leaves nothing behind that lasts.
func TestPermissions_without_one_command(t *testing.T) {
	rig.Need(t, rig.Settings)
	server := rig.Fresh(t)
	admin := rig.NewAdmin(t, server)
	full, rights := connect(t, server), documentedRights(t, 0)
	eachCommand(t, rights, func(t *testing.T, missing string) {
		name := "orders:" + missing
		grant(t, server, "latchkey", rights+" -"+missing)
		client, err := latchkey.Connect(t.Context(), server.URLAs("latchkey", "secret"), latchkey.Options{Label: latchkey.NoLabel, RetryBudget: time.Second})
		if err != nil {
			return // it is needed to connect
		}
		ctx := within(t, soon)
		require.NoError(t, full.NewSemaphore(name+":s").SetPermits(ctx, 5))
		require.NoError(t, full.NewPermitSemaphore(name+":p").SetPermits(ctx, 5))
		require.NoError(t, full.NewFairSemaphore(name+":fp").SetPermits(ctx, 5))
		failed := map[string]error{}
		note := func(name string, err error) {
			if err != nil {
				failed[name] = err
			}
		}
		for _, k := range append(kinds, readKind) {
			try, lock := k.open(client, name+":"+k.name+"try"), k.open(client, name+":"+k.name+"lock")
			note(try.Name(), firstOf(try.TryLock(ctx)))
			note(lock.Name(), firstOf(lock.Lock(within(t, 300*time.Millisecond))))
		}
		note(name+":s", client.NewSemaphore(name+":s").TryAcquire(ctx))
		note(name+":p", firstOf(client.NewPermitSemaphore(name+":p").TryAcquire(ctx)))
		note(name+":fp", firstOf(client.NewFairSemaphore(name+":fp").TryAcquire(ctx)))
		for each, why := range failed {
			rig.Eventually(t, soon, "nothing is left", func() error {
				switch {
				case strings.HasSuffix(each, ":s"), strings.HasSuffix(each, "p") && admin.Text("TYPE", each) == "string":
					if n := admin.Text("GET", each); n != "5" {
						return fmt.Errorf("%s: %s of 5 permits left after %w", each, n, why)
					}
				case admin.Exists(each):
					return fmt.Errorf("%s is held for %v after %w", each, admin.PTTL(each), why)
				}
				return nil
			})
		}
		_ = client.Close(within(t, time.Second))
	})
}

// A user lacks the permission for any single command. A release, an addition or a count that is
// refused has changed nothing: its caller may repeat it.
func TestPermissions_refused_changes_nothing(t *testing.T) {
	rig.Need(t, rig.Settings)
	server := rig.Fresh(t)
	admin, full, rights := rig.NewAdmin(t, server), connect(t, server), documentedRights(t, 0)
	eachCommand(t, rights, func(t *testing.T, missing string) {
		name, ctx := "orders:refused:"+missing, within(t, soon)
		grant(t, server, "latchkey", rights)
		client, err := latchkey.Connect(ctx, server.URLAs("latchkey", "secret"), latchkey.Options{Label: latchkey.NoLabel, RetryBudget: time.Second})
		require.NoError(t, err)
		defer func() { _ = client.Close(within(t, time.Second)) }()
		require.NoError(t, full.NewSemaphore(name+":s").SetPermits(ctx, 5))
		require.NoError(t, full.NewPermitSemaphore(name+":p").SetPermits(ctx, 5))
		require.NoError(t, firstOf(full.NewCountDownLatch(name+":l").TrySetCount(ctx, 5)))
		require.NoError(t, client.NewSemaphore(name+":s").Acquire(ctx))
		grant(t, server, "latchkey", rights+" -"+missing)
		for what, change := range map[string]struct {
			key string
			do  func() error
		}{
			"release":     {name + ":s", func() error { return client.NewSemaphore(name + ":s").Release(ctx) }},
			"add":         {name + ":s", func() error { return client.NewSemaphore(name+":s").AddPermits(ctx, 1) }},
			"add permits": {name + ":p", func() error { return client.NewPermitSemaphore(name+":p").AddPermits(ctx, 1) }},
			"count down":  {name + ":l", func() error { return firstOf(client.NewCountDownLatch(name + ":l").CountDown(ctx)) }},
		} {
			before := admin.Text("GET", change.key)
			err := change.do()
			after := admin.Text("GET", change.key)
			assert.Equal(t, err != nil, before == after, "%s: %s, then %s: %v", what, before, after, err)
		}
	})
}

// eachCommand runs a test for each command that these rights allow.
func eachCommand(t *testing.T, rights string, test func(t *testing.T, command string)) {
	t.Helper()
	for right := range strings.FieldsSeq(rights) {
		if command, allowed := strings.CutPrefix(right, "+"); allowed && !strings.HasPrefix(command, "@") {
			t.Run(command, func(t *testing.T) { test(t, command) })
		}
	}
}
