package latchkeyotel

import (
	"sync"
	"time"

	"github.com/latchkey-go/latchkey"
)

const (
	// maxFailing limits the number of holds whose failed renewals are kept. Some holds never get an
	// event for their end, because the client had too many events or was closed without an answer
	// from the server. Without the limit they would be kept forever.
	maxFailing = 1024
	// maxFailures limits the failed renewals that are kept for a hold. The first ones are kept:
	// they show when the failures began.
	maxFailures = 16
)

// failing has the failed renewals of holds that have not ended yet.
type failing struct {
	mu    sync.Mutex
	holds map[failingHold][]failedRenewal
}

// failingHold identifies a hold. Owners differ among clients.
type failingHold struct {
	kind  latchkey.Kind
	name  string
	owner latchkey.Owner
}

type failedRenewal struct {
	at  time.Time
	err error
}

// add keeps a failed renewal until the hold ends. If there are too many holds, it forgets an
// arbitrary one.
func (f *failing) add(e latchkey.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.holds == nil {
		f.holds = map[failingHold][]failedRenewal{}
	}
	hold := failingHold{e.Kind, e.Name, e.Owner}
	known := f.holds[hold]
	switch {
	case len(known) == maxFailures:
		return
	case known == nil && len(f.holds) == maxFailing:
		for other := range f.holds {
			delete(f.holds, other)
			break
		}
	}
	f.holds[hold] = append(known, failedRenewal{e.Time, e.Err})
}

// take returns the failed renewals of a hold that has ended, and forgets them.
func (f *failing) take(e latchkey.Event) []failedRenewal {
	f.mu.Lock()
	defer f.mu.Unlock()
	hold := failingHold{e.Kind, e.Name, e.Owner}
	failures := f.holds[hold]
	delete(f.holds, hold)
	return failures
}
