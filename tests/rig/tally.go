package rig

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// Tally counts the acquisitions of each of many workers and its longest wait, to show whether a
// worker starved. It is safe for concurrent use.
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

// Counts returns the number of acquisitions of each worker.
func (t *Tally) Counts() []int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.counts)
}

// Jain returns Jain's index of fairness: 1 if all counts are equal, 1/n if one worker has
// everything.
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

// Total returns the number of acquisitions of all workers.
func (t *Tally) Total() (total int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range t.counts {
		total += n
	}
	return total
}

// Fewest returns the lowest count of any worker.
func (t *Tally) Fewest() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	fewest := t.counts[0]
	for _, n := range t.counts {
		fewest = min(fewest, n)
	}
	return fewest
}

// Longest returns the longest wait of any worker.
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
