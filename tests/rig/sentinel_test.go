package rig_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/latchkey-go/latchkey/tests/rig"
)

// Whatever happens to the master, a replica takes its place, and the old master comes back as a
// replica.
func TestSentinelFailsOverAndHeals(t *testing.T) {
	t.Parallel()
	sentinel := rig.NewSentinel(t, 1)
	client := clientOf(t, sentinel.URL())
	works := func() error { return incr(client, "key") }
	rig.Eventually(t, soon, "it works", works)
	strikes := map[string]func() *rig.Server{
		"kill": sentinel.Kill, "pause": sentinel.Pause,
		"order": func() *rig.Server { master, _ := sentinel.Master(); sentinel.Failover(); return master },
	}
	if testing.Short() {
		delete(strikes, "pause")
		delete(strikes, "order")
	}
	for what, strike := range strikes {
		t0 := time.Now()
		struck := strike()
		next := sentinel.Successor(struck)
		t.Log(what, time.Since(t0))
		sentinel.Heal()
		t.Log("healed", time.Since(t0))
		master, admin := sentinel.Master()
		assert.Equal(t, next.Addr(), master.Addr(), what)
		assert.Equal(t, struck.Addr(), sentinel.Replicas()[0].Addr(), what)
		rig.Eventually(t, soon, "the client follows", works)
		assert.True(t, admin.Exists("key"), what)
	}
}

func TestReplicatedIsInStep(t *testing.T) {
	t.Parallel()
	replicated := rig.NewReplicated(t, 2, 0)
	replica := rig.NewAdmin(t, replicated.Replicas[0])
	rig.NewAdmin(t, replicated.Master).Do("SET", "key", "1")
	replicated.AwaitInStep()
	assert.True(t, replica.Exists("key"))
	replicated.Promote(0)
	replica.Do("SET", "key", "2")
}
