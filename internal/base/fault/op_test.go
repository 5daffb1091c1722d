package fault_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/base/fault"
)

func TestErrors_keep_the_chain(t *testing.T) {
	err := fault.Op("lock", "job", fault.ErrNotAcquired, nil, context.DeadlineExceeded)
	require.ErrorIs(t, err, fault.ErrNotAcquired)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, `latchkey: lock "job": not acquired: context deadline exceeded`, err.Error())
	require.ErrorIs(t, fault.ErrMaxHold, fault.ErrLost)
	require.NotErrorIs(t, fault.ErrLost, fault.ErrMaxHold)
}
