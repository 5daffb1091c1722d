package interop

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// twoLeases is longer than any hold that is not renewed.
const twoLeases = 2*shortLease + shortLease/2

// lastingLeases returns twoLeases, or far less in short mode, for tests that show other things too.
func lastingLeases() time.Duration {
	if testing.Short() {
		return 300 * time.Millisecond
	}
	return twoLeases
}

// keeps checks a condition now and then during a period, which costs less than [rig.Throughout].
func keeps(t *testing.T, during time.Duration, what string, check func() error) {
	t.Helper()
	for end := time.Now().Add(during); time.Now().Before(end); time.Sleep(min(during/4, 500*time.Millisecond)) {
		require.NoError(t, check(), what)
	}
}

// Holds of this library survive two leases while Redisson contends for them.
func TestGoHoldsAreRenewed(t *testing.T) {
	rig.Long(t)
	t.Parallel()
	where := here(t)
	eachVersion(t, func(t *testing.T, version string) {
		client := where.connect(t, latchkey.Options{Lease: shortLease})
		j := where.java(t, version)
		all, answers := allLasting(t), map[lasting]<-chan answer{}
		for _, l := range all {
			l.prepare(t, client)
			require.NoError(t, goAcquire(within(t, soon), client, l.Holds, l.Name, 0))
			answers[l] = javaTry(j.on(l.Name), l.Waits, l.Name, twoLeases)
		}
		for l, c := range answers {
			got := javaGot(t, rig.Await(t, twoLeases+soon, "Java gives up", c))
			assert.False(t, got, "%v was taken away by Redisson", l)
		}
	})
}

// Holds of Redisson survive two of its watchdog timeouts while this library contends for them.
// Redisson does not renew permits.
func TestJavaHoldsAreRenewed(t *testing.T) {
	rig.Long(t)
	t.Parallel()
	where := here(t)
	eachVersion(t, func(t *testing.T, version string) {
		client := where.connect(t)
		j := where.java(t, version, fields{"lockWatchdogTimeout": shortLease.Milliseconds()})
		waiting := map[lasting]<-chan result[bool]{}
		for _, l := range allLasting(t) {
			if l.Holds == "permit" {
				continue
			}
			require.True(t, javaGot(t, rig.Await(t, soon, "Java acquires", javaTry(j.on(l.Name), l.Holds, l.Name, 0))), l)
			waiting[l] = waitFor(t, client, l, twoLeases)
		}
		for l, c := range waiting {
			got := rig.Await(t, twoLeases+soon, "Go gives up", c)
			require.NoError(t, got.err, l)
			assert.False(t, got.value, "%v was taken away by Go", l)
			j.on(l.Name).do("lock.unlock", l.inJava()) // otherwise closing interrupts a renewal, and Redisson logs that
		}
	})
}

// recovery is how soon after the death of a holder there must be a new one: the lease, and the time
// that a waiter needs to notice on a busy machine.
const recovery = shortLease + wakeLimit

// What a killed JVM held goes to Go when its lease is over.
func TestKilledJVM(t *testing.T) {
	rig.Long(t)
	t.Parallel()
	where := here(t)
	eachVersion(t, func(t *testing.T, version string) {
		client := where.connect(t)
		own := startJVM(t, version)
		j := where.javaIn(t, own, fields{"lockWatchdogTimeout": shortLease.Milliseconds()})
		waiting := map[lasting]<-chan result[bool]{}
		for _, l := range allLasting(t) {
			l.prepare(t, client)
			require.True(t, javaGot(t, rig.Await(t, soon, "Java acquires", javaTry(j.on(l.Name), l.Holds, l.Name, 0))), l)
			waiting[l] = waitFor(t, client, l, patience)
		}
		own.kill()
		death := time.Now()
		for l, c := range waiting {
			got := rig.Await(t, patience+soon, "Go acquires or gives up", c)
			require.NoError(t, got.err, l)
			assert.True(t, got.value, "%v never came to Go", l)
			assert.Less(t, got.at.Sub(death), recovery, "%v", l)
		}
	})
}

// What a killed process of this library held goes to Java when its lease is over.
func TestKilledGo(t *testing.T) {
	rig.Long(t)
	t.Parallel()
	where := here(t)
	eachVersion(t, func(t *testing.T, version string) {
		client, j := where.connect(t), where.java(t, version)
		all := allLasting(t)
		for _, l := range all {
			l.prepare(t, client)
		}
		text, err := json.Marshal(all)
		require.NoError(t, err)
		victim := holderProcess.Start(t, where.server.URL(), string(text))
		victim.Line(t, soon, "holding")
		answers := map[lasting]<-chan answer{}
		for _, l := range all {
			if l.Waits == "fair" && fairHangs(t, version) {
				continue
			}
			answers[l] = javaTry(j.on(l.Name), l.Waits, l.Name, patience)
		}
		victim.Kill()
		death := time.Now()
		for l, c := range answers {
			a := rig.Await(t, patience+soon, "Java acquires or gives up", c)
			assert.True(t, javaGot(t, a), "%v never came to Java", l)
			assert.Less(t, a.ended().Sub(death), recovery, "%v", l)
		}
	})
}
