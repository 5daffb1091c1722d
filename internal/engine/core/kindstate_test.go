package core

import (
	"sync"
	"testing"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
)

// A program may make its first fair lock while another goroutine closes the client. The race detector judges.
func TestKindState_may_be_made_during_Close(_ *testing.T) {
	for range 100 {
		c := &Parts{kindStates: map[keyspace.Kind]*kindState{}}
		var making sync.WaitGroup
		making.Go(func() { KindState(c, keyspace.KindFair, func() (int, func()) { return 1, func() {} }) })
		c.closeKindStates()
		making.Wait()
	}
}
