package unittest_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/examples/unittest"
	"github.com/latchkey-go/latchkey/latchkeytest"
)

// Two clients of a server behave like two processes.
func TestBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // so that a busy machine does not use up the 10 ms
		server := latchkeytest.NewServer(t)
		other := unittest.NewReports(server.Client(), nothing)
		reports := unittest.NewReports(server.Client(), func(ctx context.Context) error {
			brief, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
			defer cancel()
			want(t, http.StatusConflict, other.Run(brief))
			return nil
		})
		want(t, http.StatusOK, reports.Run(t.Context()))
		want(t, http.StatusOK, other.Run(t.Context()))
	})
}

// An unreachable server is not reported as a busy lock.
func TestUnavailable(t *testing.T) {
	server := latchkeytest.NewServer(t)
	reports := unittest.NewReports(server.Client(), nothing)
	server.Stop()
	brief, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	want(t, http.StatusServiceUnavailable, reports.Run(brief))
	server.Restart()
	want(t, http.StatusOK, reports.Run(t.Context()))
}

// A process is killed while it writes. Another one gets the lock when the lease ends, and not
// before.
func TestCrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := latchkeytest.NewServer(t)
		doomed := server.Client()
		if _, err := doomed.NewLock("report:daily").Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		server.Crash(doomed)
		want(t, http.StatusOK, unittest.NewReports(server.Client(), nothing).Run(t.Context()))
		if waited := time.Since(began).Round(time.Second); waited != 30*time.Second {
			t.Errorf("waited for %v", waited)
		}
	})
}

// The server is unreachable for longer than the lease: the context of the report ends, and Run
// returns ErrLost.
func TestLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := latchkeytest.NewServer(t)
		reports := unittest.NewReports(server.Client(), func(ctx context.Context) error {
			server.Stop()
			<-ctx.Done()
			server.Restart()
			return context.Cause(ctx)
		})
		err := reports.Run(t.Context())
		if !errors.Is(err, latchkey.ErrLost) {
			t.Errorf("want ErrLost, got %v", err)
		}
		want(t, http.StatusInternalServerError, err)
	})
}

func nothing(context.Context) error { return nil }

func want(t *testing.T, status int, err error) {
	t.Helper()
	if got := unittest.Status(err); got != status {
		t.Errorf("want %d, got %d: %v", status, got, err)
	}
}
