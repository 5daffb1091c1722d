package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"
)

// lease is the lease of all locks except those of the workload held.
const lease = 30 * time.Second

// errOverlap says that a lock had more holders than it may have.
var errOverlap = errors.New("a lock had more holders than it allows: see the column " + overlapsMetric)

// A bench is one run of the program.
type bench struct {
	*settings
	peers   []Peer
	java    string // the directory of the program for Redisson
	server  *server
	version string // of the server
	links   map[time.Duration]*link
	samples []sample
	costs   []costLine // nil if they were not chosen
}

// A sample is the result of one measurement.
type sample struct {
	Workload   string
	Link       time.Duration
	Peer       string
	Repetition int
	Size       int `json:",omitempty"` // of a growth, or of a workload with sizes
	result
}

// run measures, and writes the tables and the plots. It returns errOverlap if a lock had too many
// holders.
func run(ctx context.Context, s *settings) (err error) {
	b := &bench{settings: s, links: map[time.Duration]*link{}}
	if err := b.choosePeers(ctx); err != nil {
		return err
	}
	if b.server, err = startServer(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.server.stop()) }()
	b.version = b.server.version(ctx)
	for _, roundTrip := range s.links {
		if roundTrip == 0 {
			continue
		}
		l, err := startLink(ctx, b.server.addr, roundTrip/2)
		if err != nil {
			return err
		}
		defer l.stop()
		b.links[roundTrip] = l
	}
	start := time.Now()
	b.measureAll(ctx)
	if matches(s.only, costsName) && ctx.Err() == nil {
		if b.costs, err = b.countCosts(ctx); err != nil {
			return err
		}
	}
	if err := b.write(time.Since(start)); err != nil {
		return err
	}
	if b.overlapped() {
		return errOverlap
	}
	return ctx.Err()
}

// choosePeers selects the peers, and prints which peers cannot run here.
func (b *bench) choosePeers(ctx context.Context) error {
	for _, p := range peers() {
		if !matches(b.settings.peers, p.Name()) {
			continue
		}
		if p.Name() == (redisson{}).Name() && len(b.chosenWorkloads()) > 0 {
			var err error
			if b.java, err = buildRedisson(ctx); err != nil {
				fmt.Println("Redisson is omitted:", err)
				continue
			}
		}
		b.peers = append(b.peers, p)
	}
	if len(b.peers) == 0 {
		return fmt.Errorf("-peers: no peer matches %q", b.settings.peers)
	}
	return nil
}

// countCosts counts in this process, in which nothing else runs by now.
func (b *bench) countCosts(ctx context.Context) ([]costLine, error) {
	if err := b.server.reset(ctx); err != nil {
		return nil, err
	}
	return countCosts(ctx, b.server.addr)
}

func (b *bench) measureAll(ctx context.Context) {
	for _, w := range b.chosenWorkloads() {
		for _, roundTrip := range b.linksOf(w) {
			b.measureWorkload(ctx, w, roundTrip)
		}
	}
	for _, g := range b.chosenGrowths() {
		b.measureGrowth(ctx, g)
	}
}

// measureWorkload measures all peers once per repetition, so that a disturbance of the machine
// affects all peers.
func (b *bench) measureWorkload(ctx context.Context, w Workload, roundTrip time.Duration) {
	repetitions := b.repetitions
	if w.Once {
		repetitions = 1
	}
	missing := map[string]bool{}
	for repetition := range repetitions {
		for _, size := range b.sizes(w) {
			b.measurePeers(ctx, w, sample{Workload: w.Name, Link: roundTrip, Repetition: repetition, Size: size}, missing)
		}
	}
}

// measurePeers measures all peers once, in random order. It adds the peers that have no such lock
// to missing.
func (b *bench) measurePeers(ctx context.Context, w Workload, s sample, missing map[string]bool) {
	for _, i := range rand.Perm(len(b.peers)) {
		p := b.peers[i]
		s.Peer = p.Name()
		if c, ok := p.(Chooser); missing[s.Peer] || ok && !c.Joins(w.Name) {
			continue
		}
		s.result = b.measureOne(ctx, w, s)
		switch {
		case ctx.Err() != nil:
			return // an interrupted measurement says nothing about the peer
		case s.Missing:
			missing[s.Peer] = true
		default:
			b.samples = append(b.samples, s)
			b.report(w, s)
		}
	}
}

// measureOne measures what a sample without a result names.
func (b *bench) measureOne(ctx context.Context, w Workload, s sample) result {
	if err := b.server.reset(ctx); err != nil {
		return result{Error: err.Error()}
	}
	o := order{
		Peer: s.Peer, Workload: w.Name, Addr: b.server.addr, Server: b.server.addr,
		Time: b.time, Lease: lease, Many: b.many, Java: b.java,
	}
	if s.Size > 0 {
		o.Many = s.Size
	}
	if l := b.links[s.Link]; l != nil {
		o.Addr = l.addr()
	}
	if w.ShortLease {
		o.Lease = b.lease
	}
	return measure(ctx, o, o.limit())
}

// report prints the progress.
func (b *bench) report(w Workload, s sample) {
	text := s.Error
	if text == "" {
		text = fmt.Sprintf("%.0f %s", s.Metrics[w.Primary], w.Primary)
	}
	workload := s.Workload
	if s.Size > 0 {
		workload += fmt.Sprintf(" of %d", s.Size)
	}
	fmt.Fprintf(os.Stderr, "%-24s %-5v %d %-15s %s\n", workload, s.Link, s.Repetition+1, s.Peer, text)
}

func (b *bench) overlapped() bool {
	for _, s := range b.samples {
		if s.Metrics[overlapsMetric] > 0 {
			return true
		}
	}
	return false
}
