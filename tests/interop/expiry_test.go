package interop

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// expiring is what both kinds of semaphores have in common.
type expiring interface {
	TrySetPermits(ctx context.Context, n int, options ...latchkey.SetOption) (bool, error)
	SetTTL(ctx context.Context, d time.Duration) (bool, error)
	Inspect(ctx context.Context) (latchkey.Object, error)
}

// statsError returns the error of Inspect for either kind, or ErrNotSet.
func statsError(ctx context.Context, s expiring) error {
	found, err := s.Inspect(ctx)
	if err == nil && found.Kind == latchkey.KindNone {
		err = latchkey.ErrNotSet
	}
	return err
}

// A TTL that one side sets on a semaphore ends the semaphore for both.
func TestSemaphoresExpire(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(t *testing.T, version string) {
		where := here(t)
		client, j := where.connect(t), where.java(t, version).on("main")
		for object, open := range map[string]func(name string) expiring{
			"semaphore": func(name string) expiring { return client.NewSemaphore(name) },
			"permit":    func(name string) expiring { return client.NewPermitSemaphore(name) },
		} {
			name := rig.Name(t)
			s, f := open(name), fields{"name": name, "n": 2, "millis": 300}
			gone := func() {
				rig.Eventually(t, soon, "it is gone for Go", func() error {
					if err := statsError(t.Context(), s); !errors.Is(err, latchkey.ErrNotSet) {
						return fmt.Errorf("it is there: %w", err)
					}
					return nil
				})
				assert.Zero(t, j.number(object+".available", f), "it is gone for Java")
			}
			assert.True(t, j.truth(object+".trySet", f))
			assert.True(t, j.truth(object+".expire", f))
			gone()
			set, err := s.TrySetPermits(t.Context(), 3)
			require.NoError(t, err)
			assert.True(t, set)
			done, err := s.SetTTL(t.Context(), 300*time.Millisecond)
			require.NoError(t, err)
			assert.True(t, done)
			gone()
			set, err = s.TrySetPermits(t.Context(), 3, latchkey.TTL(300*time.Millisecond))
			require.NoError(t, err)
			assert.True(t, set)
			gone()
			assert.True(t, j.truth(object+".trySet", f))
		}
	})
}
