package owners

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/latchkey-go/latchkey/internal/base/async"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// Close is Close of a Client.
func Close(ctx context.Context, c *core.Parts) error {
	ctx, cancel := c.CloseContext(ctx)
	defer cancel(nil)
	if c.StartClosing() {
		go finish(ctx, c, endHolds(c))
	}
	return c.AwaitEnd(ctx)
}

// endHolds ends every hold with ErrClosed at once, and returns the ownerships whose locks
// must be released.
func endHolds(c *core.Parts) []*ownership.Ownership {
	return slices.DeleteFunc(All(c), func(o *ownership.Ownership) bool { return !o.EndAtClose() })
}

// finish does the work of a close in order: the calls of the program end, locks are released, and
// the parts end.
func finish(ctx context.Context, c *core.Parts, ended []*ownership.Ownership) {
	c.Working.Wait()
	c.End(ctx, releaseAll(ctx, append(ended, endHolds(c)...)))
}

// closeReleases is how many locks Close releases at a time.
const closeReleases = 64

// releaseAll frees the locks of ownerships that are over. If a release fails, many others
// will fail in the same way: the first error stands for all.
func releaseAll(ctx context.Context, ended []*ownership.Ownership) (first error) {
	var failed atomic.Int32
	async.ForEach(closeReleases, ended, func(o *ownership.Ownership) {
		if failed.Load() > 0 {
			failed.Add(1) // on a silent server each of the rest would take as long again
			return
		}
		if err := o.ReleaseAtClose(ctx); err != nil && outcome.Classify(err) != outcome.Refused && failed.Add(1) == 1 {
			first = err
		}
	})
	if n := failed.Load(); n > 1 {
		first = fmt.Errorf("%w (and %d more)", first, n-1)
	}
	return first
}
