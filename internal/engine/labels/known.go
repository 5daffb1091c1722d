package labels

import (
	"context"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// Known has the labels of other clients that this client has read. Errors name the holder by them
// without a query, and a walk over many objects reads the same label less often.
type Known struct {
	own    *Record // of this client
	config Config

	mu        sync.Mutex
	labels    map[string]knownLabel // by record
	notBefore time.Time             // no query before that, after a refusal
}

// knownLabel is a label, or "" if there was none at that time.
type knownLabel struct {
	label string
	at    time.Time
	noted bool // the client had notes then, or before
}

// mostLabels is how many labels of other clients a client remembers.
const mostLabels = 10_000

// NewKnown returns the labels that the client with that record knows: none yet.
func NewKnown(own *Record) *Known {
	return &Known{own: own, config: own.config, labels: map[string]knownLabel{}}
}

// LabelOf returns the label of an owner as it is in Redis, or "" if it is unknown.
func (k *Known) LabelOf(owner string) string {
	record, _ := identity.Of(owner).Record()
	if record == k.own.id {
		return k.config.Label
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.labels[record].label
}

// Fetch reads the label of an owner in the background, unless it is known, or was missing recently.
func (k *Known) Fetch(owner string) {
	record, _ := identity.Of(owner).Record()
	if record == "" || k.config.Label == "" || !k.mayFetch() {
		return
	}
	k.mu.Lock()
	known, was := k.labels[record]
	again := !was || known.label == "" && time.Since(known.at) > refresh
	k.mu.Unlock()
	if !again || record == k.own.id {
		return
	}
	k.learn(record, "", false) // keeps other calls from reading it at the same time
	k.config.Sender.Background(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		k.describe(ctx, []identity.Owner{identity.Of(owner)}, 0)
	})
}

// withoutNotes returns the label of a client that had no notes less than trust ago, and never had
// any as far as is known. It returns "" for any other client.
func (k *Known) withoutNotes(record string, trust time.Duration) string {
	if trust == 0 {
		return ""
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	known := k.labels[record]
	if known.noted || time.Since(known.at) > trust {
		return ""
	}
	return known.label
}

// learn remembers a label, and whether its client has notes. A label never changes, but a missing
// one may appear.
func (k *Known) learn(record, label string, noted bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	known, was := k.labels[record]
	if !was && len(k.labels) >= mostLabels {
		clear(k.labels)
	}
	k.labels[record] = knownLabel{label, time.Now(), known.noted || noted}
}

// mayFetch reports whether the server has not refused recently.
func (k *Known) mayFetch() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return time.Now().After(k.notBefore)
}

// failed notes that records could not be read. After a refusal the client does not retry at once.
func (k *Known) failed(err error) {
	if !outcome.Declined(err) {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.notBefore = time.Now().Add(refresh)
}
