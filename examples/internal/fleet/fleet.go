// Package fleet gives the examples a server and pods. A pod is a client that behaves like the
// client of a separate process. Your own program does not need this package: it calls
// [latchkey.Connect] once.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/latchkeytest"
)

// Variable is the environment variable with the URL of the server.
const Variable = "LATCHKEY_REDIS"

// Prefix precedes all names of the examples, so that they do not collide with other names on a
// server.
const Prefix = "latchkey-example:"

// limit ends an example that hangs.
const limit = time.Minute

// Fleet is a server with pods.
type Fleet struct {
	url      string
	embedded *latchkeytest.Server // nil if there is a URL in the environment
	pods     []*latchkey.Client
}

// Start uses the server whose URL is in LATCHKEY_REDIS, or starts one inside this process.
func Start() (*Fleet, error) {
	if url := os.Getenv(Variable); url != "" {
		return &Fleet{url: url}, nil
	}
	server, err := latchkeytest.Start()
	if err != nil {
		return nil, err
	}
	return &Fleet{url: server.URL(), embedded: server}, nil
}

// URL is the address of the server.
func (f *Fleet) URL() string { return f.url }

// Pod returns a new client with connections of its own. Close closes it.
func (f *Fleet) Pod(ctx context.Context, options latchkey.Options) (*latchkey.Client, error) {
	options.KeyPrefix = Prefix
	client, err := latchkey.Connect(ctx, f.url, options)
	if err != nil {
		return nil, err
	}
	f.pods = append(f.pods, client)
	return client, nil
}

// Pods returns n new clients.
func (f *Fleet) Pods(ctx context.Context, n int, options latchkey.Options) (pods []*latchkey.Client, err error) {
	for range n {
		pod, err := f.Pod(ctx, options)
		if err != nil {
			return nil, err
		}
		pods = append(pods, pod)
	}
	return pods, nil
}

// Close closes the pods, which releases what they hold, and the server if it was started here.
func (f *Fleet) Close(ctx context.Context) (err error) {
	for _, pod := range f.pods {
		err = errors.Join(err, pod.Close(ctx))
	}
	if f.embedded != nil {
		f.embedded.Close()
	}
	return err
}

// Main runs an example on a fleet and exits with 1 on an error. The context ends on ctrl-c.
func Main(example func(ctx context.Context, f *Fleet) error) {
	if err := run(example); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(example func(ctx context.Context, f *Fleet) error) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	f, err := Start()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close(context.WithoutCancel(ctx))) }()
	return example(ctx, f)
}

// InLine waits until n waiters are in the queue of a fair lock or a fair semaphore.
func InLine(ctx context.Context, line interface {
	Waiters(ctx context.Context) ([]latchkey.Waiter, error)
}, n int) error {
	for {
		waiters, err := line.Waiters(ctx)
		if err != nil || len(waiters) >= n {
			return err
		}
		time.Sleep(time.Millisecond) // there is no event for a new waiter
	}
}
