package outcome

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
	for err, want := range map[error]Outcome{
		nil: Answered, dial: NotSent, ErrTooManyInFlight: NotSent, io.EOF: Uncertain, ErrSilent: Uncertain,
		rueidis.ErrClosing: Uncertain, ErrClientClosed: NotSent,
		context.Canceled: Uncertain, &net.OpError{Op: "read", Err: io.EOF}: Uncertain,
	} {
		require.Equal(t, want, Classify(err), "%v", err)
	}
}
