package tests

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// numbering acquires a lock, and returns the token of the hold.
type numbering func(ctx context.Context) (token int64, release func(context.Context) error, err error)

// numbered is a lock whose holds have tokens.
type numbered struct {
	name string
	open func(c *latchkey.Client, name string) numbering
}

// numberedKinds are all that issue tokens.
var numberedKinds = []numbered{
	numberedLock("FencedLock", func(c *latchkey.Client, name string) latchkey.Locker { return c.NewFencedLock(name) }),
	numberedLock("FencedFairLock", func(c *latchkey.Client, name string) latchkey.Locker {
		return c.NewFairLock(name, latchkey.Fenced())
	}),
	numberedLock("MultiLock", func(c *latchkey.Client, name string) latchkey.Locker {
		return latchkey.NewMultiLock(c.NewFencedLock(name), c.NewFencedLock(name+" 2"))
	}),
	{"Election", func(c *latchkey.Client, name string) numbering {
		e := c.NewElection(name)
		return func(ctx context.Context) (int64, func(context.Context) error, error) {
			l, err := e.Campaign(ctx, "me")
			if err != nil {
				return 0, nil, err
			}
			return l.Term(), l.Resign, nil
		}
	}},
}

func numberedLock(kind string, open func(*latchkey.Client, string) latchkey.Locker) numbered {
	return numbered{kind, func(c *latchkey.Client, name string) numbering {
		lock := open(c, name)
		return func(ctx context.Context) (int64, func(context.Context) error, error) {
			hold, err := lock.Lock(ctx)
			if err != nil {
				return 0, nil, err
			}
			of := append(hold.Members(), hold)[0]
			return of.Token(), hold.Unlock, nil
		}
	}}
}

// contend has two clients of three goroutines each acquire the lock that many times, and returns
// the tokens in the order of the holds.
func (k numbered) contend(t *testing.T, name string, each int, options latchkey.Options) (tokens []int64) {
	t.Helper()
	all := rig.Goroutines(t)
	for range 2 {
		acquire := k.open(connect(t, rig.Shared(), options), name)
		for range 3 {
			all.Go(func() {
				for range each {
					token, release, err := acquire(within(t, time.Minute))
					if !assert.NoError(t, err) {
						return
					}
					tokens = append(tokens, token)
					rest(2 * time.Millisecond)
					assert.NoError(t, release(context.Background()))
				}
			})
		}
	}
	all.Wait()
	return tokens
}

// If nothing goes wrong, the tokens are 1, 2, 3 and so on, however many contend for the lock.
func TestFencingTokens_have_no_gaps(t *testing.T) {
	t.Parallel()
	for _, k := range numberedKinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			for i, token := range k.contend(t, rig.Name(t), 10, latchkey.Options{}) {
				require.Equal(t, int64(i+1), token)
			}
		})
	}
}

// With TimeFencing tokens follow the clock of the server, also those of a contended lock. So a
// token is larger than all before it even if the counter is lost.
func TestTimeFencing_survives_the_loss_of_the_counter(t *testing.T) {
	t.Parallel()
	for _, k := range numberedKinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			name, options := rig.Name(t), latchkey.Options{TimeFencing: true}
			admin := rig.NewAdmin(t, rig.Shared())
			tokens := k.contend(t, name, 10, options)
			require.IsIncreasing(t, tokens)
			last := slices.Max(tokens)
			assert.LessOrEqual(t, last, serverMillis(t, admin), "no token is ahead of the server's clock")
			admin.Do("DEL", tokenKey(name))
			next, release, err := k.open(connect(t, rig.Shared(), options), name)(within(t, soon))
			require.NoError(t, err)
			require.Greater(t, next, last)
			require.NoError(t, release(t.Context()))
		})
	}
}

// serverMillis returns the time of the server in ms.
func serverMillis(t *testing.T, admin *rig.Admin) int64 {
	t.Helper()
	now := admin.Strings("TIME")
	seconds, err1 := strconv.ParseInt(now[0], 10, 64)
	micros, err2 := strconv.ParseInt(now[1], 10, 64)
	require.NoError(t, err1)
	require.NoError(t, err2)
	return 1000*seconds + micros/1000
}
