package latchkey

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

func TestClassify(t *testing.T) {
	dial := &net.OpError{Op: "dial", Err: errors.New("refused")}
	for err, want := range map[error]outcome{
		nil: answered, dial: notSent, errSlots: notSent, io.EOF: uncertain, errSilent: uncertain,
		rueidis.ErrClosing: uncertain, errClientClosed: notSent,
		context.Canceled: uncertain, &net.OpError{Op: "read", Err: io.EOF}: uncertain,
	} {
		require.Equal(t, want, classify(err), "%v", err)
	}
}
