package latchkeytest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/latchkeytest"
)

// Report is the code under test: the first process writes today's report, and
// the others skip it.
func Report(ctx context.Context, client *latchkey.Client, write func(context.Context) error) (string, error) {
	hold, err := client.NewLock("nightly-report").TryLock(ctx)
	if errors.Is(err, latchkey.ErrNotAcquired) {
		return "left to another process", nil
	}
	if err != nil {
		return "", err
	}
	defer func() { _ = hold.Unlock(ctx) }()
	return "written", write(hold.Context(ctx))
}

// This example tests Report. In a real test t is the *testing.T of the test
// function, and nothing needs to be closed or deleted.
func ExampleNewServer() {
	t := newT()
	defer t.end()

	ctx := context.Background()
	server := latchkeytest.NewServer(t)
	here, elsewhere := server.Client(), server.Client()

	outcome, err := Report(ctx, here, func(ctx context.Context) error {
		meanwhile, err := Report(ctx, elsewhere, nil)
		fmt.Println("elsewhere:", meanwhile)
		return err
	})
	fmt.Println("here:", outcome, err)
	// Output:
	// elsewhere: left to another process
	// here: written <nil>
}

// The process that writes the report dies. Its lease is an hour long, and the
// test does not wait for it.
func ExampleManualTime() {
	t := newT()
	defer t.end()

	ctx := context.Background()
	server := latchkeytest.NewServer(t, latchkeytest.ManualTime())
	dead, here := server.Client(), server.Client()
	write := func(context.Context) error { return nil }

	_, err := dead.NewLock("nightly-report").TryLock(ctx, latchkey.Lease(time.Hour))
	fmt.Println("another process begins:", err)
	fmt.Println(Report(ctx, here, write))
	server.Advance(time.Hour)
	fmt.Println(Report(ctx, here, write))
	// Output:
	// another process begins: <nil>
	// left to another process <nil>
	// written <nil>
}

// exampleT stands in for the *testing.T that an example does not have.
type exampleT struct {
	testing.TB
	cleanups []func()
}

func newT() *exampleT { return &exampleT{} }

func (t *exampleT) Helper()                           {}
func (t *exampleT) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (t *exampleT) Cleanup(f func())                  { t.cleanups = append(t.cleanups, f) }

func (t *exampleT) end() {
	for i := len(t.cleanups) - 1; i >= 0; i-- {
		t.cleanups[i]()
	}
}
