package hold_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/latchkey-go/latchkey"
)

// A nil Hold and a zero Hold behave like a released one.
func TestHold_nil(t *testing.T) {
	ctx := context.Background()
	for name, h := range map[string]*latchkey.Hold{"nil": nil, "zero": {}} {
		assert.Empty(t, h.Name(), name)
		assert.True(t, h.Owner().IsZero(), name)
		assert.Zero(t, h.Token(), name)
		assert.Zero(t, h.ValidFor(), name)
		assert.ErrorIs(t, h.Err(), latchkey.ErrNotHeld, name)
		assert.ErrorIs(t, h.Unlock(ctx), latchkey.ErrNotHeld, name)
		assert.ErrorIs(t, h.Extend(ctx, time.Minute), latchkey.ErrNotHeld, name)
		assert.ErrorIs(t, context.Cause(h.Context(ctx)), latchkey.ErrNotHeld, name)
		assert.Nil(t, h.Members(), name)
		assert.Nil(t, h.Member("any"), name)
		_, err := h.Downgrade(ctx)
		assert.Error(t, err, name)
		select {
		case <-h.Lost():
		default:
			t.Errorf("%s: not lost", name)
		}
	}
}
