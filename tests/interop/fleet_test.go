package interop

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/tests/rig"
)

// envShares sets for how long shares are measured. If it is set, the test runs with all hold times,
// and in larger fleets too.
const envShares = "LATCHKEY_TEST_SHARES"

const (
	fleetThreads = 4 // of each process
	fleetStart   = time.Second
)

// fleet says how many processes of this library, and clients of Redisson with connections of their
// own, want the same object, with four threads each.
type fleet struct{ processes, java int }

func (f fleet) String() string { return fmt.Sprintf("%d of Go, %d of Java", f.processes, f.java) }

// beside returns the fleet with as many threads, all of Java.
func (f fleet) beside() fleet { return fleet{0, f.processes + f.java} }

// Processes of this library and of Redisson want the same object all the time. No thread gets more
// than twice as much as a thread of the other side, and Java threads wait no longer than among
// themselves.
func TestMixedFleetShares(t *testing.T) {
	rig.Long(t)
	fleets, holds := []fleet{{1, 1}}, []time.Duration{time.Millisecond}
	if os.Getenv(envShares) != "" {
		fleets, holds = append(fleets, fleet{4, 1}), append(holds, 0, 20*time.Millisecond)
	}
	for _, f := range fleets {
		for _, kind := range []string{"lock", "fair", "write", "rw", "semaphore", "permit"} {
			for _, hold := range holds {
				t.Run(fmt.Sprintf("%v, %s, hold %v", f, kind, hold), func(t *testing.T) {
					alone := f.beside().contend(t, kind, hold)
					mixed := f.contend(t, kind, hold)
					compare(t, mixed, alone)
				})
			}
		}
	}
}

// sides are what the threads of this library and those of Java achieved.
type sides struct{ ours, java outcome }

func (f fleet) contend(t *testing.T, kind string, hold time.Duration) sides {
	t.Helper()
	where, lasts := here(t), rig.Campaign(t, envShares, time.Second)
	version := versions()[0]
	var clients []*java
	for range f.java {
		clients = append(clients, where.java(t, version))
	}
	a := newExclusionContest(t, where, kind, contestants{processes: f.processes, java: clients, threads: fleetThreads, lasts: lasts})
	a.contest.Hold = hold.Milliseconds()
	a.contest.From = time.Now().Add(fleetStart).UnixNano()
	outcomes := a.hold()
	return sides{outcomes["Go"], outcomes["Redisson "+version]}
}

// each returns the passes in time of all threads, and their mean.
func (o *outcome) each() (sum, mean float64) {
	for _, n := range o.Shares {
		sum += float64(n)
	}
	return sum, sum / float64(max(len(o.Shares), 1))
}

// noise is the factor by which a wait may seem longer by chance.
const noise = 1.1

func compare(t *testing.T, mixed, alone sides) {
	t.Helper()
	if len(mixed.java.Shares) == 0 || len(alone.java.Shares) == 0 {
		t.Log("no comparison: Java gave up")
		return
	}
	sumOurs, ours := mixed.ours.each()
	sumJava, java := mixed.java.each()
	_, among := alone.java.each()
	t.Logf("passes of a thread: Go %.1f %v, Java %.1f %v: %.1f %% Java; Java alone %.1f %v", ours, mixed.ours.Shares,
		java, mixed.java.Shares, 100*sumJava/max(sumOurs+sumJava, 1), among, alone.java.Shares)
	p99, before := mixed.java.wait(0.99), alone.java.wait(0.99)
	t.Logf("waits: Java p99 %v, longest %v; Java alone p99 %v, longest %v; Go p99 %v, longest %v", ms(p99), ms(mixed.java.wait(1)),
		ms(before), ms(alone.java.wait(1)), ms(mixed.ours.wait(0.99)), ms(mixed.ours.wait(1)))
	rig.Target(t, ours <= 2*java && java <= 2*ours, "a thread of Go passes %.1f times, one of Java %.1f times: want 2:1 at most", ours, java)
	rig.Target(t, float64(p99) <= noise*float64(before), "p99 of Java's waits is %v, among Java alone %v", ms(p99), ms(before))
}

func ms(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }
