package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redis/rueidis"
)

// Metrics maps the name of a figure, with its unit, to its value.
type Metrics map[string]float64

// A Column is a figure in the table of a workload.
type Column struct {
	Metric string
	Digits int // decimals
}

// A Workload is one thing to measure.
type Workload struct {
	Name, Title string
	Primary     string // the metric of the ratio and of the plot
	Beside      string // the metric that the plot shows beside the primary one; may be empty
	Less        bool   // less of it is better
	Columns     []Column
	Sizes       []int // numbers of clients, in the order of the table; empty if the workload has its own number
	Once        bool  // takes long: one repetition is enough
	ShortLease  bool  // uses the short lease of the settings, because it measures for a whole lease
	Run         func(e *env) (Metrics, error)
}

// column returns the column of a metric.
func (w Workload) column(metric string) Column {
	i := slices.IndexFunc(w.Columns, func(c Column) bool { return c.Metric == metric })
	return w.Columns[i]
}

// An order says what a child process measures.
type order struct {
	Peer, Workload string
	Addr           string        // to which the peer connects, possibly a link
	Server         string        // from which the counters are read
	Time           time.Duration // how long to measure
	Lease          time.Duration
	Many           int    // how many locks are held, how many goroutines wait, or how many clients there are
	Java           string // the directory of the program for Redisson
}

// An env is the environment of a workload.
type env struct {
	order
	ctx    context.Context // lasts as long as the process
	peer   Peer
	server rueidis.Client
}

// errMissing says that a peer has no such lock.
var errMissing = errors.New("the peer does not have such a lock")

func (e *env) open() (Client, error) { return e.peer.Open(e.ctx, e.Addr, e.Lease) }

// openMany opens clients, each with connections of its own.
func (e *env) openMany(n int) ([]Client, error) {
	clients := make([]Client, n)
	for i := range clients {
		var err error
		if clients[i], err = e.open(); err != nil {
			return nil, err
		}
	}
	return clients, nil
}

func (e *env) count() (counters, error) { return count(e.ctx, e.server, e.peer) }

// overlapsMetric counts how often a lock had more holders than it may have. Any value other than 0
// shows that the lock does not exclude.
const overlapsMetric = "overlaps"

var aloneColumns = []Column{
	{"grants/s", 0}, {"p50 µs", 0}, {"p99 µs", 0}, {"commands/grant", 2}, {"server µs/grant", 1},
}

var contendedColumns = []Column{
	{"handovers/s", 0}, {"client changes/s", 0}, {"grants/s", 0}, {"wait p50 ms", 2}, {"wait p99 ms", 2},
	{"longest wait ms", 0}, {"commands/grant", 3}, {"server µs/grant", 1}, {overlapsMetric, 0},
}

// workloads returns all workloads in the order in which they run.
func workloads() []Workload {
	list := []Workload{
		alone("uncontended-1", "Uncontended: 1 goroutine acquires and releases", 1),
		alone("uncontended-64", "Uncontended: 64 goroutines of one client, each on a lock of its own", 64),
		alone("uncontended-256", "Uncontended: 256 goroutines of one client, each on a lock of its own", 256),
		contest("contended-1x16", "Contended: 1 client x 16 goroutines on one lock", 1, 16, exclusive{}),
		contest("contended-8x4", "Contended: 8 clients x 4 goroutines on one lock", 8, 4, exclusive{}),
		contest("fair", "Fair lock: 8 clients x 4 goroutines on one lock", 8, 4, fair{}),
		contest("readwrite", "Read/write lock: 8 clients x 4 goroutines, 5 % write", 8, 4, readWrite{}),
		contest("semaphore", "Semaphore of 8 permits: 8 clients x 4 goroutines", 8, 4, permits{}),
		manyClients("clients-lock", "Many clients: 8, 100 and 400 clients on one lock", exclusive{}),
		manyClients("clients-semaphore", "Many clients: 8, 100 and 400 clients on a semaphore of 8 permits", permits{}),
	}
	return append(list, wakeupWorkload(), heldWorkload(), waitingWorkload(),
		limiting("limiter-1", "Rate limiter: 1 goroutine asks", 1),
		limiting("limiter-64", "Rate limiter: 64 goroutines of one client, each asks one of its own", 64))
}

func alone(name, title string, goroutines int) Workload {
	return Workload{
		Name: name, Title: title, Primary: "grants/s", Columns: aloneColumns,
		Run: func(e *env) (Metrics, error) { return uncontended(e, goroutines, acquireAndRelease) },
	}
}

func limiting(name, title string, goroutines int) Workload {
	w := alone(name, title, goroutines)
	w.Run = func(e *env) (Metrics, error) { return uncontended(e, goroutines, askLimiter) }
	return w
}

func contest(name, title string, clients, each int, k kind) Workload {
	w := Workload{
		Name: name, Title: title, Primary: "handovers/s", Columns: contendedColumns,
		Run: func(e *env) (Metrics, error) { return contended(e, clients, each, k, drainLimit) },
	}
	if k.capacity() > 1 { // holders share it: there is nothing to hand over
		w.Primary, w.Columns = "grants/s", contendedColumns[2:]
	}
	return w
}
