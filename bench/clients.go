package main

import "time"

// clientCounts are the numbers of clients of the workloads that show the growth with clients.
var clientCounts = []int{8, 100, 400}

// clientsTime is how many times as long as others these workloads measure. Each of 400 clients has
// to get several grants, or its share says nothing.
const clientsTime = 6

// clientsLimit is how long the last of many clients may wait after the measured time. Redisson
// needs most of it.
const clientsLimit = 20 * time.Second

var clientsColumns = []Column{
	{"grants/s", 0}, {fairnessMetric, 2}, {"longest wait ms", 0}, {"commands/grant", 1}, {"server µs/grant", 1},
	{overlapsMetric, 0},
}

// manyClients is a workload in which each client has one goroutine, as if it were a process of a
// fleet.
func manyClients(name, title string, k kind) Workload {
	return Workload{
		Name: name, Title: title, Primary: "grants/s", Beside: fairnessMetric, Columns: clientsColumns, Sizes: clientCounts,
		Run: func(e *env) (Metrics, error) {
			e.Time *= clientsTime
			return contended(e, e.Many, 1, k, clientsLimit)
		},
	}
}

// fairnessMetric is Jain's index over the goroutines: 1 if all got the same number of grants, and
// 1/n if one of n got them all.
const fairnessMetric = "fairness"

// fairness returns Jain's index of some shares, or 0 if nobody got anything.
func fairness(shares []float64) float64 {
	var sum, squares float64
	for _, share := range shares {
		sum += share
		squares += share * share
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(shares)) * squares)
}

// sizes returns the sizes of a workload that are measured: 0 if it has none, and not the largest if
// there is little time.
func (s *settings) sizes(w Workload) []int {
	switch {
	case len(w.Sizes) == 0:
		return []int{0}
	case s.quick:
		return w.Sizes[:len(w.Sizes)-1]
	}
	return w.Sizes
}

// linksOf returns the round trips over which a workload is measured. With many clients, the proxy
// of a link would need more of the processor than the server.
func (s *settings) linksOf(w Workload) []time.Duration {
	if len(w.Sizes) == 0 {
		return s.links
	}
	return []time.Duration{0}
}
