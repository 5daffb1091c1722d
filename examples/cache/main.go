// Command cache runs four pods that find an outdated cache. One of them rebuilds it.
//
//	go run ./examples/cache
//
// That pod acquires the write side of a latchkey.RWLock and downgrades it after the rebuild: from
// then on all pods read, and no other pod can write between the rebuild and the reads of that pod.
// The failure is a reader that tries to write: it would wait for itself, so it gets an error.
package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/examples/internal/fleet"
)

const name = "cache:prices"

// cache is shared by the pods. In a real program it is a key, a file or a table.
type cache struct {
	version atomic.Int32
	built   atomic.Int32 // how often it was rebuilt
}

func main() { fleet.Main(run) }

func run(ctx context.Context, f *fleet.Fleet) error {
	pods, err := f.Pods(ctx, 4, latchkey.Options{})
	if err != nil {
		return err
	}
	var prices cache
	errs := make(chan error, len(pods))
	var all sync.WaitGroup
	for _, pod := range pods {
		all.Go(func() { errs <- prices.use(ctx, pod.NewRWLock(name), 1) })
	}
	all.Wait()
	close(errs)
	for err := range errs {
		if err != nil { // on ErrLost the answer may mix two versions: read again
			return err
		}
	}
	fmt.Printf("%d pods read version %d, built %d time\n", len(pods), prices.version.Load(), prices.built.Load())
	return upgrade(ctx, pods[0].NewRWLock(name))
}

// use reads the cache, and rebuilds it first if it is older than wanted.
func (c *cache) use(ctx context.Context, lock *latchkey.RWLock, wanted int32) (err error) {
	read, err := lock.Reader().Lock(ctx)
	if err != nil {
		return err
	}
	if c.version.Load() < wanted {
		if err := read.Unlock(ctx); err != nil { // a reader cannot become a writer
			return err
		}
		if read, err = c.rebuild(ctx, lock, wanted); err != nil {
			return err
		}
	}
	defer func() { err = errors.Join(err, read.Unlock(ctx)) }()
	if got := c.version.Load(); got < wanted {
		return fmt.Errorf("read version %d", got)
	}
	return context.Cause(read.Context(ctx))
}

// rebuild returns a read hold of a cache that is new enough.
func (c *cache) rebuild(ctx context.Context, lock *latchkey.RWLock, wanted int32) (*latchkey.Hold, error) {
	write, err := lock.Writer().Lock(ctx)
	if err != nil {
		return nil, err
	}
	if c.version.Load() < wanted { // otherwise another pod was faster
		c.built.Add(1)
		c.version.Store(wanted) // use write.Context(ctx) for this if it takes long
	}
	return write.Downgrade(ctx)
}

// upgrade shows the error of a reader that tries to write.
func upgrade(ctx context.Context, lock *latchkey.RWLock) error {
	return lock.Reader().Do(ctx, func(ctx context.Context) error {
		_, err := lock.Writer().TryLock(ctx)
		fmt.Println("a reader cannot become a writer:", errors.Is(err, latchkey.ErrUpgrade))
		return nil
	})
}
