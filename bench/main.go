package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	if order := os.Getenv(orderVariable); order != "" {
		child(order)
	}
	s, err := parseFlags(os.Args[1:])
	if err != nil {
		os.Exit(2) // the flag package has said why
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err = run(ctx, s)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// settings has the values of the flags.
type settings struct {
	quick       bool
	repetitions int
	time        time.Duration
	lease       time.Duration // of held locks
	many        int
	links       []time.Duration // round trips; 0 is a direct connection
	only, peers string
	out, docs   string
}

func parseFlags(args []string) (*settings, error) {
	s := &settings{lease: 6 * time.Second, many: 10_000}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.BoolVar(&s.quick, "quick", false,
		"one short repetition, with 1000 held locks and waiters, and at most 100 clients")
	flags.IntVar(&s.repetitions, "reps", 3, "number of repetitions")
	flags.DurationVar(&s.time, "dur", 500*time.Millisecond, "duration of one measurement")
	flags.StringVar(&s.only, "only", "*", "comma-separated workloads; * matches any text")
	flags.StringVar(&s.peers, "peers", "*", "comma-separated peers; * matches any text; ratios need the peer floor")
	links := flags.String("link", "0,2ms", "comma-separated round-trip times to the server; 0 uses the loopback interface without delay")
	flags.StringVar(&s.out, "out", "results", "directory for results.md and the plots")
	flags.StringVar(&s.docs, "docs", "",
		"`DIR` for the plots of the page DIR.md, usually ../docs/performance; also fills "+rawName+" here")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if s.quick {
		s.repetitions, s.time, s.lease, s.many = 1, 200*time.Millisecond, 2*time.Second, 1000
	}
	var err error
	if s.links, err = parseLinks(*links); err == nil {
		err = s.check()
	}
	if err != nil {
		fmt.Fprintln(flags.Output(), err)
	}
	return s, err
}

func (s *settings) check() error {
	switch {
	case s.repetitions < 1:
		return errors.New("-reps: must be at least 1")
	case s.time < time.Millisecond:
		return errors.New("-dur: must be at least 1ms")
	case len(s.chosenWorkloads())+len(s.chosenGrowths()) == 0 && !matches(s.only, costsName):
		return fmt.Errorf("-only: no workload matches %q", s.only)
	}
	return nil
}

func parseLinks(text string) ([]time.Duration, error) {
	var links []time.Duration
	for part := range strings.SplitSeq(text, ",") {
		d, err := time.ParseDuration(part)
		if err != nil || d < 0 {
			return nil, fmt.Errorf("-link: %q is not a round-trip time", part)
		}
		links = append(links, d)
	}
	return links, nil
}

// matches reports whether a name matches one of the comma-separated patterns.
func matches(patterns, name string) bool {
	for pattern := range strings.SplitSeq(patterns, ",") {
		if ok, err := path.Match(pattern, name); ok && err == nil {
			return true
		}
	}
	return false
}

func (s *settings) chosenWorkloads() []Workload {
	var chosen []Workload
	for _, w := range workloads() {
		if matches(s.only, w.Name) {
			chosen = append(chosen, w)
		}
	}
	return chosen
}

func (s *settings) chosenGrowths() []Growth {
	return slices.DeleteFunc(growths(), func(g Growth) bool { return !matches(s.only, g.Name) })
}
