package tests

import (
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// Everything goes on behind a fixed address, whatever the form of the client.
func TestFixedEndpoint_forms(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Topology)
	asOpened := func(o *rueidis.ClientOption) { *o = rueidis.ClientOption{InitAddress: o.InitAddress} }
	confirming := confirmed(5 * time.Second)
	for form, each := range map[string]struct {
		client  func(*testing.T, rueidis.ClientOption, latchkey.Options) *latchkey.Client
		set     func(*rueidis.ClientOption)
		options latchkey.Options
	}{
		"opened RESP2": {open, func(o *rueidis.ClientOption) { o.AlwaysRESP2, o.ForceSingleClient = true, false }, latchkey.Options{Label: latchkey.NoLabel}},
		"lazy":         {open, asOpened, latchkey.Options{LazyConnect: true}},
		"confirmed":    {open, asOpened, confirming},

		"borrowed RESP2":         {client: lent, set: func(o *rueidis.ClientOption) { o.AlwaysRESP2 = true }},
		"borrowed pipelining":    {client: lent, set: func(o *rueidis.ClientOption) { o.AlwaysPipelining, o.PipelineMultiplex = true, 2 }},
		"borrowed confirmed":     {lent, func(*rueidis.ClientOption) {}, confirming},
		"borrowed small pool":    {client: lent, set: func(o *rueidis.ClientOption) { o.BlockingPoolSize = 3 }},
		"borrowed without retry": {client: lent, set: func(o *rueidis.ClientOption) { o.DisableRetry = true }},
	} {
		t.Run(form, func(t *testing.T) {
			f := newFixedEndpoint(t)
			client := func() *latchkey.Client {
				option := f.pair.Master.Options(f.tap.Addr())
				each.set(&option)
				each.options.RetryBudget = 10 * time.Second
				return each.client(t, option, each.options)
			}
			outlast(t, client(), client(), func() (repair func()) {
				f.swap()
				return func() {}
			})
		})
	}
}

// lent borrows a client with settings of the test, and closes both at the end of the test.
func lent(t *testing.T, option rueidis.ClientOption, options latchkey.Options) *latchkey.Client {
	t.Helper()
	client, closeAll, err := borrow(option, options)
	require.NoError(t, err)
	t.Cleanup(func() { _ = closeAll(within(t, after)) })
	return client
}

// Calls of every kind are made again and again while the roles change again and again.
func TestFixedEndpoint_swaps(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Topology)
	for form, isBorrowed := range map[string]bool{"opened": false, "borrowed": true} {
		t.Run(form, func(t *testing.T) {
			f := newFixedEndpoint(t)
			client := f.client(t, isBorrowed, latchkey.Options{})
			for i := range 6 {
				hold := mustLock(t, client.NewLock("swapped"))
				f.swap()
				began := time.Now()
				mustUnlock(t, hold)
				mustUnlock(t, mustLock(t, client.NewFairLock("swapped too")))
				assert.LessOrEqual(t, time.Since(began), after+leeway/2, "round %d", i)
			}
		})
	}
}
