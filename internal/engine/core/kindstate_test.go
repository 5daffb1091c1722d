package core

import (
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
)

// A program may make its first fair lock while another goroutine closes the client. The race
// detector judges.
func TestKindState_may_be_made_during_Close(_ *testing.T) {
	for range 10 {
		c := &Parts{kindStates: map[keyspace.Kind]*kindState{}}
		var making sync.WaitGroup
		making.Go(func() { KindState(c, keyspace.KindFair, func() (int, func()) { return 1, func() {} }) })
		time.Sleep(10 * time.Millisecond) // most often the state is made by then, but nothing says so
		c.closeKindStates()
		making.Wait()
	}
}
