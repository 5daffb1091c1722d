package latchkeyotel

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey"
)

// The memory for holds that never get an event for their end is bounded.
func TestFailedRenewalsAreBounded(t *testing.T) {
	var f failing
	event := func(name int) latchkey.Event {
		return latchkey.Event{Kind: latchkey.KindLock, Name: strconv.Itoa(name), Time: time.Now(), Err: errors.New("away")}
	}
	for name := range 3 * maxFailing {
		for range 3 * maxFailures {
			f.add(event(name))
		}
		if len(f.holds) > maxFailing {
			t.Fatal("too many holds are kept:", len(f.holds))
		}
	}
	last := event(3*maxFailing - 1)
	if n := len(f.take(last)); n != maxFailures {
		t.Error("the latest hold has failed renewals:", n)
	}
	if n := len(f.take(last)); n != 0 {
		t.Error("a hold that has ended has failed renewals:", n)
	}
	if len(f.holds) != maxFailing-1 {
		t.Error("what is kept has no end:", len(f.holds))
	}
}
