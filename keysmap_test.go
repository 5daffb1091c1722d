package latchkey

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// Unlock does not call the name mapper: a program may hold a mutex that its mapper needs.
func TestNameMapperIsNotCalledByUnlock(t *testing.T) {
	var mapped atomic.Int32
	c := newTestClient(t, Options{NameMapper: func(name string) string { mapped.Add(1); return "app:" + name }})
	for _, lock := range []Locker{c.NewLock("a"), c.NewFairLock("b"), c.NewMutex("c"), c.NewRWLock("d").Writer()} {
		hold, err := lock.TryLock(t.Context())
		require.NoError(t, err)
		for i := range 5000 { // more names than the client keeps
			c.NewLock(fmt.Sprint("other", i))
		}
		before := mapped.Load()
		require.NoError(t, hold.Unlock(t.Context()))
		require.Equal(t, before, mapped.Load())
	}
}
