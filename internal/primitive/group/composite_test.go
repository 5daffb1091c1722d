package group_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
	"github.com/latchkey-go/latchkey/internal/primitive/group"
	"github.com/latchkey-go/latchkey/internal/primitive/lock"
	"github.com/latchkey-go/latchkey/internal/testredis"
)

// A round that gets the lock just as the time of the call ends succeeds.
func TestRounds_success_at_the_end_of_the_time(t *testing.T) {
	ctx, end := context.WithCancel(context.Background())
	defer end()
	rounds := 0
	several := group.Lock{
		Members: []group.Member{group.Single{Lock: acquire.NewLock(testredis.NewEngine(t), lock.Mutex, "member")}},
		Round: func(context.Context, *request.Request, []request.Setting) (*hold.Handle, bool, error) {
			if rounds++; rounds == 1 {
				return nil, true, fault.ErrNotAcquired
			}
			end()
			return &hold.Handle{}, false, nil
		},
		Pause: time.Millisecond,
	}
	h, err := several.Run(ctx, &request.Request{Waits: true}, nil)
	require.NoError(t, err)
	require.NotNil(t, h)
	require.Equal(t, 2, rounds)
}

// A round is the last if it says so, or if the call does not wait.
func TestRounds_end(t *testing.T) {
	for name, c := range map[string]struct {
		waits, again bool
	}{"hopeless": {waits: true}, "one attempt": {again: true}} {
		rounds := 0
		several := group.Lock{
			Round: func(context.Context, *request.Request, []request.Setting) (*hold.Handle, bool, error) {
				rounds++
				return nil, c.again, fault.ErrWrongKind
			},
		}
		_, err := several.Run(context.Background(), &request.Request{Waits: c.waits}, nil)
		assert.ErrorIs(t, err, fault.ErrWrongKind, name)
		assert.Equal(t, 1, rounds, name)
	}
}
