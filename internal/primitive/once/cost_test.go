package once_test

import (
	"context"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/primitive/once"
	"github.com/latchkey-go/latchkey/internal/testredis"
)

// BenchmarkDone compares Do of work that is done with its bare script. LATCHKEY_TEST_REDIS names a
// real server.
func BenchmarkDone(b *testing.B) {
	c := testredis.NewEngine(b)
	o, ctx := once.New(c, testredis.UniqueName(b, c), time.Hour), context.Background()
	do := func() {
		if _, err := o.Do(ctx, func(context.Context) ([]byte, error) { return []byte("a result"), nil }, nil); err != nil {
			b.Fatal(err)
		}
	}
	bare := func() {
		call := script.NewCall(script.OnceAcquire, []string{o.Names.Key}, ownerA, "30000")
		if err := call.Cmd.Send(ctx, c.Rueidis, call.Keys, call.Args).Error(); err != nil {
			b.Fatal(err)
		}
	}
	do()
	for _, each := range []struct {
		name string
		run  func()
	}{{"do", do}, {"bare", bare}, {"do", do}, {"bare", bare}} {
		b.Run(each.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				each.run()
			}
		})
		b.Run(each.name+" by 64", func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(32)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					each.run()
				}
			})
		})
	}
}
