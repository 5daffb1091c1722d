package rig

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// Tally counts what each of many workers achieved and how long it waited, to tell
// whether somebody starved. It may be used from many goroutines.
type Tally struct {
	mu      sync.Mutex
	counts  []int
	longest []time.Duration
}

// NewTally makes a tally for workers 0 to n-1.
func NewTally(n int) *Tally {
	return &Tally{counts: make([]int, n), longest: make([]time.Duration, n)}
}

// Add records one acquisition of a worker and the wait for it.
func (t *Tally) Add(worker int, wait time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts[worker]++
	t.longest[worker] = max(t.longest[worker], wait)
}

// Waited records a wait that ended too late to count as an acquisition.
func (t *Tally) Waited(worker int, wait time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.longest[worker] = max(t.longest[worker], wait)
}

// Counts is what each worker has achieved.
func (t *Tally) Counts() []int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.counts)
}

// Jain is Jain's index of fairness: 1 when all have the same, 1/n when one has everything.
func Jain(counts []int) float64 {
	var sum, squares float64
	for _, n := range counts {
		sum += float64(n)
		squares += float64(n) * float64(n)
	}
	if squares == 0 {
		return 1
	}
	return sum * sum / (float64(len(counts)) * squares)
}

// Total is the number of acquisitions of all workers.
func (t *Tally) Total() (total int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range t.counts {
		total += n
	}
	return total
}

// Fewest is what the least lucky worker got.
func (t *Tally) Fewest() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	fewest := t.counts[0]
	for _, n := range t.counts {
		fewest = min(fewest, n)
	}
	return fewest
}

// Longest is the longest wait of any worker.
func (t *Tally) Longest() (longest time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, d := range t.longest {
		longest = max(longest, d)
	}
	return longest
}

func (t *Tally) String() string {
	return fmt.Sprintf("%d acquisitions, the fewest of a worker %d, the longest wait %v",
		t.Total(), t.Fewest(), t.Longest().Round(time.Millisecond))
}
