package fault_test

import (
	"context"
	"errors"
	"fmt"
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

// A value of a log line must not break the line, nor repeat the prefix of the message.
func TestOneLine(t *testing.T) {
	down := errors.Join(fault.ErrUnavailable, errors.New("i/o timeout"))
	for want, err := range map[string]error{
		"latchkey: server unavailable; i/o timeout":            down,
		"latchkey: server unavailable: not sent":               fmt.Errorf("%w: %w", fault.ErrUnavailable, errors.New("latchkey: not sent")),
		"the subscription broke; server unavailable":           errors.Join(errors.New("the subscription broke"), fault.ErrUnavailable),
		`latchkey: renew "a": server unavailable; i/o timeout`: fault.Op("renew", "a", down),
		`latchkey: do "\"latchkey: a": lock "latchkey: b": not acquired`: fault.Op(
			"do", `"latchkey: a`, fault.Op("lock", "latchkey: b", fault.ErrNotAcquired)),
	} {
		require.EqualError(t, fault.OneLine(err), want)
		require.ErrorIs(t, fault.OneLine(err), err)
	}
	require.NoError(t, fault.OneLine(nil))
}
