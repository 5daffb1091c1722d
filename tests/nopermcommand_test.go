package tests

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// A user that lacks a single command: what fails leaves nothing behind that lasts.
func TestPermissions_without_one_command(t *testing.T) {
	rig.Need(t, rig.Settings)
	server := rig.Fresh(t)
	admin := rig.NewAdmin(t, server)
	var commands []string
	for _, word := range documentedACL(t, 0) {
		if strings.HasPrefix(word, "+") && !strings.HasPrefix(word, "+@") {
			commands = append(commands, word[1:])
		}
	}
	full := connect(t, server)
	for _, missing := range commands {
		t.Run(missing, func(t *testing.T) {
			name := "orders:" + missing
			admin.Do(append([]string{"ACL", "SETUSER", "latchkey"}, documentedACL(t, 0)...)...)
			admin.Do("ACL", "SETUSER", "latchkey", "-"+missing)
			client, err := latchkey.Connect(t.Context(), server.URLAs("latchkey", "SECRET"), latchkey.Options{Label: latchkey.NoLabel, RetryBudget: time.Second})
			if err != nil {
				return // it is needed to connect
			}
			ctx := within(t, soon)
			require.NoError(t, full.NewSemaphore(name+":s").SetPermits(ctx, 5))
			require.NoError(t, full.NewPermitSemaphore(name+":p").SetPermits(ctx, 5))
			require.NoError(t, full.NewFairSemaphore(name+":fp").SetPermits(ctx, 5))
			failed := map[string]error{}
			for _, k := range append(kinds, readKind) {
				for _, call := range []string{"try", "lock"} {
					lock := k.open(client, name+":"+k.name+call)
					var err error
					if call == "try" {
						_, err = lock.TryLock(ctx)
					} else {
						c, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
						_, err = lock.Lock(c)
						cancel()
					}
					if err != nil {
						failed[lock.Name()] = err
					}
				}
			}
			if err := client.NewSemaphore(name+":s").TryAcquire(ctx, 1); err != nil {
				failed[name+":s"] = err
			}
			if _, err := client.NewPermitSemaphore(name + ":p").TryAcquire(ctx); err != nil {
				failed[name+":p"] = err
			}
			if _, err := client.NewFairSemaphore(name + ":fp").TryAcquire(ctx); err != nil {
				failed[name+":fp"] = err
			}
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
}
