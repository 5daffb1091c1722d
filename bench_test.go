package latchkey

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/script"
)

// The benchmarks need a server: LATCHKEY_TEST_REDIS=redis://… go test -bench .
func benchClient(b *testing.B) *Client {
	b.Helper()
	url := os.Getenv("LATCHKEY_TEST_REDIS")
	if url == "" {
		b.Skip("LATCHKEY_TEST_REDIS names no server")
	}
	c, err := Connect(context.Background(), url, Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// BenchmarkFloor measures the two scripts without the library.
func BenchmarkFloor(b *testing.B) {
	c := benchClient(b)
	each(b, func(key string) func(context.Context) error {
		k := keyspace.OfKey(key, key)
		return func(ctx context.Context) error {
			if err := script.LockAcquire.Send(ctx, c.engine().Rueidis, k.Queued(), []string{"o", "30000"}).Error(); !rueidis.IsRedisNil(err) {
				return err
			}
			return script.LockRelease.Send(ctx, c.engine().Rueidis, k.Fenced(), []string{"o", "ch:{" + key + "}"}).Error()
		}
	})
}

// BenchmarkLock measures the same commands through the library.
func BenchmarkLock(b *testing.B) {
	c := benchClient(b)
	each(b, func(key string) func(context.Context) error { return pair(c.NewLock(key)) })
}

// BenchmarkBorrowed is BenchmarkLock with a client that was passed to New. The library does not
// know whether calls of such a client return when a context ends.
func BenchmarkBorrowed(b *testing.B) {
	own := benchClient(b)
	c, err := New(own.engine().Rueidis, Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close(context.Background()) })
	each(b, func(key string) func(context.Context) error { return pair(c.NewLock(key)) })
}

// BenchmarkMutex measures the plain lock: one command and one script.
func BenchmarkMutex(b *testing.B) {
	c := benchClient(b)
	each(b, func(key string) func(context.Context) error { return pair(c.NewMutex(key)) })
}

// BenchmarkAllow measures a request that goes, and BenchmarkAllowFloor its script without the
// library.
func BenchmarkAllow(b *testing.B) {
	c := benchClient(b)
	each(b, func(key string) func(context.Context) error {
		l := c.NewRateLimiter(key, manyRequests)
		return func(ctx context.Context) error { _, err := l.Allow(ctx); return err }
	})
}

func BenchmarkAllowFloor(b *testing.B) {
	c := benchClient(b)
	each(b, func(key string) func(context.Context) error {
		keys, args := []string{key}, []string{keyspace.Rate(manyRequests).Text(), "1", "0"}
		return func(ctx context.Context) error {
			return script.RateTake.Send(ctx, c.engine().Rueidis, keys, args).Error()
		}
	})
}

var manyRequests = Rate{N: 1_000_000_000, Per: time.Second, Burst: 1_000_000_000}

func pair(l Locker) func(context.Context) error {
	return func(ctx context.Context) error {
		h, err := l.Lock(ctx)
		if err != nil {
			return err
		}
		return h.Unlock(ctx)
	}
}

// each runs uncontended pairs from 1, 64 and 256 goroutines.
func each(b *testing.B, newPair func(key string) func(context.Context) error) {
	b.Helper()
	for _, n := range []int{1, 64, 256} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			b.ReportAllocs()
			done := make(chan error, n)
			for i := range n {
				go func() {
					ctx, pair := context.Background(), newPair("bench:"+strconv.Itoa(i))
					for range b.N / n {
						if err := pair(ctx); err != nil {
							done <- err
							return
						}
					}
					done <- nil
				}()
			}
			for range n {
				if err := <-done; err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
