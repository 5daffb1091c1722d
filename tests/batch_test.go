package tests

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// A server, or a proxy, that refuses a batch of renewals for one of its keys is asked for
// smaller and smaller parts, not for each of the others alone: the holds beside it are
// renewed in time however far away the server is, and can be released meanwhile.
func TestRefusedBatchIsDivided(t *testing.T) {
	t.Parallel()
	const lease, many = 6 * time.Second, 64
	server, name := rig.Shared(), rig.Name(t)
	tap := rig.NewTap(t, server)
	client := connectVia(t, server, tap.Addr(), latchkey.Options{Lease: lease})
	// One slot, so that a cluster has one batch too.
	lockName := func(i int) string { return fmt.Sprintf("{%s}:%d:", name, i) }
	holds := make([]*latchkey.Hold, many)
	for i := range holds {
		holds[i] = mustLock(t, client.NewLock(lockName(i)))
	}
	var mu sync.Mutex
	alone := map[string]bool{}
	stop := tap.Refuse(func(c rig.Command) bool {
		keys := named(c, "{"+name+"}:")
		mu.Lock()
		defer mu.Unlock()
		if len(keys) == 1 {
			alone[keys[0]] = true
		}
		return strings.HasPrefix(c.Name(), "EVAL") && rig.Mentions(lockName(7))(c)
	}, "NOPERM one of the keys may not be used")
	rest(lease * 2 / 3)
	stop()
	mu.Lock()
	assert.NotEmpty(t, alone, "nothing was refused")
	assert.Less(t, len(alone), many/4, "renewed alone")
	mu.Unlock()
	for i, hold := range holds {
		if i != 7 {
			assert.NoError(t, hold.Err())
			mustUnlock(t, hold)
		}
	}
}

// named returns the words of a command that begin so.
func named(c rig.Command, prefix string) (words []string) {
	for _, word := range c.Args {
		if strings.HasPrefix(word, prefix) {
			words = append(words, word)
		}
	}
	return words
}
