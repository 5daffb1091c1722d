package group

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/async"
	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// giveBack unlocks holds that nobody relies on. It leaves releases without an answer to the
// background after patience, or when ctx ends.
func giveBack(ctx context.Context, holds []*hold.Handle, patience time.Duration) {
	callUntil(ctx, holds, 0, patience, func(h *hold.Handle) error { return h.Unlock(context.Background()) })
}

// callUntil calls f for all holds at once, and returns the errors by index. Once enough calls have
// succeeded, it waits for the others for patience only; when ctx ends, it stops waiting. In place
// of a missing result it returns [outcome.ErrSilent]. Every call is made in any case, and the
// caller may change holds as soon as callUntil returns.
func callUntil(
	ctx context.Context, holds []*hold.Handle, enough int, patience time.Duration, f func(*hold.Handle) error,
) []error {
	holds = slices.Clone(holds) // a call may begin after callUntil has returned
	indexes := slices.DeleteFunc(async.Indexes(holds), func(i int) bool { return holds[i] == nil })
	calls := callMembers(indexes, func(i int) (*hold.Handle, error) { return holds[i], f(holds[i]) })
	errs := make([]error, len(holds))
	var silence <-chan time.Time
	for {
		if enough <= 0 && silence == nil {
			silence = time.After(patience)
		}
		r, heard := calls.next(ctx, silence)
		if !heard {
			break
		}
		errs[r.index] = ofMember(r.index, r.err)
		if r.err == nil {
			enough--
		}
	}
	for i := range calls.pending {
		errs[i] = ofMember(i, errors.Join(fault.ErrUnknownOutcome, outcome.Unavailable(outcome.ErrSilent)))
	}
	return errs
}

// memberCalls are calls of members that are in flight, all at the same time.
type memberCalls struct {
	results chan memberResult
	pending map[int]bool // the indexes of members whose results are missing
}

// memberResult is the result of one call of a member.
type memberResult struct {
	index int
	hold  *hold.Handle
	err   error
}

// callMembers begins a call for each index.
func callMembers(indexes []int, call func(index int) (*hold.Handle, error)) memberCalls {
	c := memberCalls{results: make(chan memberResult, len(indexes)), pending: map[int]bool{}}
	for _, i := range indexes {
		c.pending[i] = true
		go func() {
			h, err := call(i)
			c.results <- memberResult{i, h, err}
		}()
	}
	return c
}

// next waits for a result until ctx ends or silence fires. It does not wait if no call is pending.
func (c *memberCalls) next(ctx context.Context, silence <-chan time.Time) (r memberResult, heard bool) {
	if len(c.pending) == 0 {
		return r, false
	}
	select {
	case r = <-c.results:
		delete(c.pending, r.index)
		return r, true
	case <-silence:
	case <-ctx.Done():
	}
	return r, false
}

// lastedBy is how long at least n of several last, 0 if there are fewer than n.
func lastedBy(n int, times []time.Duration) time.Duration {
	if len(times) < n {
		return 0
	}
	slices.Sort(times)
	return times[len(times)-n]
}

// ofMember adds the number of a member to its error: members of a composite lock often share their
// name.
func ofMember(index int, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("member %d: %w", index+1, err)
}
