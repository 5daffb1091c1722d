package tests

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// shards is a cluster of three masters, one of which will be silent, with names of locks on each.
type shards struct {
	*rig.Cluster
	silent   *rig.Server
	onSilent []string // names of locks on the silent master
	onOthers []string // names on the other two, alternating
	admins   []*rig.Admin
}

// newShards returns a cluster with that many names on each master, each in a slot of its own.
func newShards(t *testing.T, names int) *shards {
	t.Helper()
	s := &shards{Cluster: rig.NewStubbornCluster(t)}
	byMaster := map[*rig.Server][]string{}
	var masters []*rig.Server
	ranges := map[*rig.Server][2]int{} // slots known to be of a master: each has one range
	for i, full := 0, 0; full < 3; i++ {
		name := fmt.Sprintf("%s %d", t.Name(), i)
		slot := rig.Slot(name)
		var master *rig.Server
		for known, between := range ranges {
			if between[0] <= slot && slot <= between[1] {
				master = known
			}
		}
		if master == nil {
			var admin *rig.Admin
			master, admin = s.Serving(name)
			if byMaster[master] == nil {
				masters = append(masters, master)
				s.admins = append(s.admins, admin)
				ranges[master] = [2]int{slot, slot}
			}
			ranges[master] = [2]int{min(ranges[master][0], slot), max(ranges[master][1], slot)}
		}
		if len(byMaster[master]) == names {
			continue
		}
		byMaster[master] = append(byMaster[master], name)
		if len(byMaster[master]) == names {
			full++
		}
	}
	s.silent, s.onSilent = masters[0], byMaster[masters[0]]
	for i := range names {
		s.onOthers = append(s.onOthers, byMaster[masters[1]][i], byMaster[masters[2]][i])
	}
	return s
}

// pauseSilent stops the silent master, and resumes it at the end of the test.
func (s *shards) pauseSilent(t *testing.T) {
	t.Helper()
	s.silent.Pause(t)
	t.Cleanup(func() { s.silent.Resume(t) })
}

// contend lets many goroutines contend for locks on the silent master until the end of the
// test. Each attempt lasts up to a second.
func (s *shards) contend(t *testing.T, client *latchkey.Client, crowd int) {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	var wanting sync.WaitGroup
	t.Cleanup(func() { end(); wanting.Wait() })
	for i := range crowd {
		lock := client.NewLock("{" + s.onSilent[i%len(s.onSilent)] + "}" + fmt.Sprint(" crowd ", i))
		wanting.Go(func() {
			for ctx.Err() == nil {
				patience, cancel := context.WithTimeout(ctx, time.Second)
				if hold, err := lock.Lock(patience); err == nil {
					_ = hold.Unlock(ctx)
				}
				cancel()
			}
		})
	}
}

// pace is the throughput of a number of workers.
type pace struct {
	took   []time.Duration // duration of each call
	failed int             // calls that acquired nothing
	per    float64         // acquisitions per second
}

func (p pace) p99() time.Duration { return p.took[len(p.took)*99/100] }

func (p pace) String() string {
	return fmt.Sprintf("%.0f acquisitions/s, p50 %v, p99 %v", p.per, p.took[len(p.took)/2].Round(10*time.Microsecond), p.p99().Round(10*time.Microsecond))
}

// work runs one worker per name, which locks and unlocks until lasts is over.
func work(t *testing.T, client *latchkey.Client, names []string, lasts time.Duration) pace {
	t.Helper()
	var mu sync.Mutex
	var p pace
	var working sync.WaitGroup
	start := time.Now()
	for _, name := range names {
		lock := client.NewLock(name)
		working.Go(func() {
			var took []time.Duration
			failed := 0
			for time.Since(start) < lasts {
				ctx, cancel := context.WithTimeout(context.Background(), soon)
				asked := time.Now()
				hold, err := lock.Lock(ctx)
				took = append(took, time.Since(asked))
				if err == nil {
					_ = hold.Unlock(ctx) // which a busy machine may not execute in time
				} else {
					failed++
				}
				cancel()
			}
			mu.Lock()
			defer mu.Unlock()
			p.took = append(p.took, took...)
			p.failed += failed
		})
	}
	working.Wait()
	p.per = float64(len(p.took)-p.failed) / time.Since(start).Seconds()
	slices.Sort(p.took)
	return p
}

// listening waits until a waiter of a lock has subscribed on one of the nodes that answer, or is in
// the queue of the lock, which it joins only after it has subscribed.
func (s *shards) listening(t *testing.T, name string) {
	t.Helper()
	rig.Eventually(t, soon, "a waiter subscribes", func() error {
		for _, admin := range s.admins[1:] {
			if len(admin.Strings("KEYS", "latchkey_queue:*"+name+"*")) > 0 {
				return nil
			}
			for _, question := range []string{"CHANNELS", "SHARDCHANNELS"} {
				if len(admin.Strings("PUBSUB", question, "*"+name+"*")) > 0 {
					return nil
				}
			}
		}
		return errors.New("no subscription")
	})
}
