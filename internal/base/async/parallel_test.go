package async

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each piece of work runs once, and never more than limit at a time.
func TestInParallel(t *testing.T) {
	const limit = 3
	var underWay, calls atomic.Int32
	full := make(chan struct{})
	ForEach(limit, make([]int, 50), func(int) {
		assert.LessOrEqual(t, underWay.Add(1), int32(limit))
		defer underWay.Add(-1)
		n := calls.Add(1)
		if n == limit {
			close(full)
		}
		if n <= limit {
			<-full // the first calls run at the same time
		}
	})
	require.EqualValues(t, 50, calls.Load())
	bad := errors.New("bad")
	require.Equal(t, []error{nil, bad, nil}, Errors([]int{0, 1, 2}, func(i int) error {
		if i == 1 {
			return bad
		}
		return nil
	}), "each error has the index of what it is about")
	require.Empty(t, Errors([]int{}, func(int) error { return bad }))
}
