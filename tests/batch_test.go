package tests

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// If a server or a proxy refuses a batch of renewals because of one key, the client halves the
// batch until it finds that key, rather than renewing each hold alone. The other holds are renewed
// in time, even with a distant server, and can be released during this.
func TestRefusedBatchIsDivided(t *testing.T) {
	t.Parallel()
	const lease, many = 6 * time.Second, 64
	server, name := rig.Shared(), rig.Name(t)
	tap := rig.NewTap(t, server)
	var mu sync.Mutex
	alone, renewed := map[string]bool{}, map[string]bool{}
	client := connectVia(t, server, tap.Addr(), latchkey.Options{Lease: lease, Observer: func(e latchkey.Event) {
		if e.Type == latchkey.EventRenewed {
			mu.Lock()
			defer mu.Unlock()
			renewed[e.Name] = true
		}
	}})
	// One slot, so that a cluster gets a single batch too.
	lockName := func(i int) string { return fmt.Sprintf("{%s}:%d:", name, i) }
	holds := make([]*latchkey.Hold, many)
	failures := make([]error, many)
	var all sync.WaitGroup
	for i := range holds { // at once, so that they are renewed together
		all.Go(func() { holds[i], failures[i] = client.NewLock(lockName(i)).Lock(within(t, soon)) })
	}
	all.Wait()
	require.NoError(t, errors.Join(failures...))
	stop := tap.Refuse(func(c rig.Command) bool {
		keys := named(c, "{"+name+"}:")
		mu.Lock()
		defer mu.Unlock()
		if len(keys) == 1 {
			alone[keys[0]] = true
		}
		return strings.HasPrefix(c.Name(), "EVAL") && rig.Mentions(lockName(7))(c)
	}, "NOPERM one of the keys may not be used")
	mu.Lock()
	clear(renewed)
	mu.Unlock()
	rig.Eventually(t, soon, "all but one are renewed", func() error {
		mu.Lock()
		defer mu.Unlock()
		delete(renewed, lockName(7)) // it may be renewed before the server refuses it
		if len(renewed) < many-1 || !alone[lockName(7)] {
			return fmt.Errorf("%d of %d, alone %v", len(renewed), many, alone)
		}
		return nil
	})
	stop()
	mu.Lock()
	assert.Less(t, len(alone), many/4, "renewed alone")
	mu.Unlock()
	for i, hold := range holds {
		if i != 7 {
			assert.NoError(t, hold.Err())
			mustUnlock(t, hold)
		}
	}
}

// named returns the arguments of a command that begin with prefix.
func named(c rig.Command, prefix string) (words []string) {
	for _, word := range c.Args {
		if strings.HasPrefix(word, prefix) {
			words = append(words, word)
		}
	}
	return words
}
