package latchkey

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// giveBack unlocks holds that nobody relies on. After a while, or when ctx ends, those that
// are silent are left to the background.
func giveBack(ctx context.Context, holds []*Hold, patience time.Duration) {
	callUntil(ctx, holds, 0, patience, func(h *Hold) error { return h.Unlock(context.Background()) })
}

// callUntil calls f for holds, all at once, and returns their errors by their places. When it
// has succeeded for enough of them, the others are waited for only for the patience:
// [transport.ErrSilent] stands for their results. When ctx ends, none is waited for. Every call
// is made all the same, and holds may be changed as soon as callUntil returns.
func callUntil(ctx context.Context, holds []*Hold, enough int, patience time.Duration, f func(*Hold) error) []error {
	holds = slices.Clone(holds) // a call may begin after callUntil has returned
	places := slices.DeleteFunc(indexes(holds), func(i int) bool { return holds[i] == nil })
	calls := callMembers(places, func(i int) (*Hold, error) { return holds[i], f(holds[i]) })
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
		errs[r.place] = ofMember(r.place, r.err)
		if r.err == nil {
			enough--
		}
	}
	for i := range calls.pending {
		errs[i] = ofMember(i, errors.Join(ErrUnknownOutcome, transport.Unavailable(transport.ErrSilent)))
	}
	return errs
}

// memberCalls are calls of members that are under way, all at the same time.
type memberCalls struct {
	results chan memberResult
	pending map[int]bool // the places of members whose results are not there yet
}

// memberResult is what came of one.
type memberResult struct {
	place int
	hold  *Hold
	err   error
}

// callMembers begins a call for each place.
func callMembers(places []int, call func(place int) (*Hold, error)) memberCalls {
	c := memberCalls{results: make(chan memberResult, len(places)), pending: map[int]bool{}}
	for _, i := range places {
		c.pending[i] = true
		go func() {
			h, err := call(i)
			c.results <- memberResult{i, h, err}
		}()
	}
	return c
}

// next waits for a result: not if there is none to come, and only until ctx ends or there has
// been silence for too long.
func (c *memberCalls) next(ctx context.Context, silence <-chan time.Time) (r memberResult, heard bool) {
	if len(c.pending) == 0 {
		return r, false
	}
	select {
	case r = <-c.results:
		delete(c.pending, r.place)
		return r, true
	case <-silence:
	case <-ctx.Done():
	}
	return r, false
}

// lastedBy is for how long n of several last at least, 0 if they are fewer than n.
func lastedBy(n int, times []time.Duration) time.Duration {
	if len(times) < n {
		return 0
	}
	slices.Sort(times)
	return times[len(times)-n]
}

// ofMember says whose error it is: members of a composite lock often share their name.
func ofMember(place int, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("member %d: %w", place+1, err)
}
