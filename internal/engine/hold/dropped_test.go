package hold_test

import (
	"context"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/report"
	"github.com/latchkey-go/latchkey/internal/primitive/lock"
	"github.com/latchkey-go/latchkey/internal/testredis"
)

func TestClient_dropped_hold_is_reported(t *testing.T) {
	for what, change := range map[string]func(*testredis.Settings){
		"from the start": func(s *testredis.Settings) { s.ReportDropped = true },
		"once renewed": func(s *testredis.Settings) {
			s.Lease, s.PollCeiling, s.RetryBudget = time.Second, time.Second/2, time.Second
		},
	} {
		t.Run(what, func(t *testing.T) { droppedHoldIsReported(t, change) })
	}
}

func droppedHoldIsReported(t *testing.T, change func(*testredis.Settings)) {
	t.Helper()
	logged := make(chan string, 10)
	c := testredis.NewEngine(t, change, func(s *testredis.Settings) { s.Logger = logTo(logged) })
	func() {
		_, err := acquire.NewLock(c, lock.Reentrant, testredis.UniqueName(t, c)).Acquire(context.Background(), "lock", true, nil)
		require.NoError(t, err)
	}()
	require.Eventually(t, func() bool {
		runtime.GC()
		select {
		case text := <-logged:
			return text == report.NoticeUnreleased.Text
		default:
			return false
		}
	}, time.Minute, time.Millisecond)
}

// logTo returns a logger that sends its messages to a channel, if there is room.
func logTo(messages chan string) *slog.Logger {
	return slog.New(&channelHandler{slog.DiscardHandler, messages})
}

type channelHandler struct {
	slog.Handler
	messages chan string
}

func (h *channelHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h *channelHandler) Handle(_ context.Context, r slog.Record) error {
	select {
	case h.messages <- r.Message:
	default:
	}
	return nil
}
