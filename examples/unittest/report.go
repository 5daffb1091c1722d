// Package unittest is code that uses locks, with its unit tests:
//
//	go test -v ./examples/unittest
//
// Each test has a server of its own inside the test process (latchkeytest). If time matters, the
// test runs in a bubble of testing/synctest, in which leases expire without real waiting.
package unittest

import (
	"context"
	"errors"
	"net/http"

	"github.com/latchkey-go/latchkey"
)

// Reports writes the daily report, one process at a time.
type Reports struct {
	lock  *latchkey.Lock
	write func(context.Context) error
}

// NewReports takes the client and the function that writes the report, so that a test can pass its
// own.
func NewReports(client *latchkey.Client, write func(context.Context) error) *Reports {
	return &Reports{client.NewLock("report:daily"), write}
}

// Run waits for its turn and writes the report.
func (r *Reports) Run(ctx context.Context) error {
	return r.lock.Do(ctx, r.write)
}

// Status returns the status with which an HTTP handler answers an error of Run.
func Status(err error) int {
	switch {
	case err == nil:
		return http.StatusOK
	case errors.Is(err, latchkey.ErrNotAcquired):
		return http.StatusConflict
	case errors.Is(err, latchkey.ErrUnavailable):
		return http.StatusServiceUnavailable
	default: // for example ErrLost: check what was written
		return http.StatusInternalServerError
	}
}
