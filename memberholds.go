package latchkey

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// giveBack unlocks holds that nobody relies on. After a while, or when ctx ends, those that
// are silent are left to the background.
func giveBack(ctx context.Context, holds []*Hold, patience time.Duration) {
	most(ctx, holds, 0, patience, func(h *Hold) error { return h.Unlock(context.Background()) })
}

// most calls f for holds, all at once, and returns their errors by their places. When it
// has succeeded for enough of them, the others are waited for only a while: an errSilent
// stands for their results. When ctx ends, none is waited for.
func most(ctx context.Context, holds []*Hold, enough int, patience time.Duration, f func(*Hold) error) []error {
	errs := make([]error, len(holds))
	type result struct {
		place int
		err   error
	}
	results := make(chan result, len(holds))
	left := 0
	for i, h := range holds {
		if h == nil {
			continue
		}
		left++
		errs[i] = ofMember(i, errors.Join(ErrUnknownOutcome, unavailable(errSilent)))
		go func() { results <- result{i, f(h)} }()
	}
	var silence <-chan time.Time
	for ; left > 0; left-- {
		if enough <= 0 && silence == nil {
			silence = time.After(patience)
		}
		select {
		case r := <-results:
			errs[r.place] = ofMember(r.place, r.err)
			if r.err == nil {
				enough--
			}
		case <-silence:
			return errs
		case <-ctx.Done():
			return errs
		}
	}
	return errs
}

// ofMember says whose error it is: members of a composite lock often share their name.
func ofMember(place int, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("member %d: %w", place+1, err)
}
