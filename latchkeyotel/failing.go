package latchkeyotel

import (
	"sync"
	"time"

	"github.com/latchkey-go/latchkey"
)

const (
	// maxFailing is of how many holds failed renewals are kept. A hold of which no end is ever told, because the
	// client had too many events, or was closed without an answer of the server, would otherwise be kept forever.
	maxFailing = 1024
	// maxFailures is how many are kept of a hold: the first ones tell when it began.
	maxFailures = 16
)

// failing are the failed renewals of holds that have not ended yet.
type failing struct {
	mu    sync.Mutex
	holds map[failingHold][]failedRenewal
}

// failingHold tells one hold from another. Owners differ among clients.
type failingHold struct {
	kind  latchkey.Kind
	name  string
	owner latchkey.Owner
}

type failedRenewal struct {
	at  time.Time
	err error
}

// add keeps a failed renewal until the hold ends, in place of those of any other hold if there are too many.
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
