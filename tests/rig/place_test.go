package rig_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/latchkey-go/latchkey/tests/rig"
)

// judge records failures of a test.
type judge struct {
	testing.TB
	errors, fatal int
}

func (j *judge) Errorf(string, ...any) { j.errors++ }
func (j *judge) Fatalf(string, ...any) { j.fatal++ }

// What belongs to a test does not call its FailNow in another goroutine, such as that of a parallel
// subtest, which Go answers with the end of the process.
func TestFailuresInOtherGoroutines(t *testing.T) {
	j := &judge{TB: t}
	admin := rig.NewAdmin(j, rig.Shared())
	done := make(chan struct{})
	go func() {
		defer close(done)
		assert.Zero(t, admin.Int("NONSENSE"))
	}()
	rig.Await(t, soon, "the goroutine, which goes on", done)
	assert.Equal(t, []int{2, 0}, []int{j.errors, j.fatal}, "the command, and its reply")
	admin.Do("NONSENSE")
	assert.Positive(t, j.fatal)
}

// A cluster for a subtest fails that subtest.
func TestClusterInASubtest(t *testing.T) {
	t.Parallel()
	cluster := rig.NewCluster(t)
	t.Run("subtest", func(t *testing.T) {
		t.Parallel()
		j := &judge{TB: t}
		_, admin := cluster.In(j).Serving("key")
		admin.Do("NONSENSE")
		assert.Positive(t, j.fatal)
	})
}
