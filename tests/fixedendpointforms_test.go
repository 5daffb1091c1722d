package tests

import (
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// Everything goes on behind a fixed address, whatever the form of the client.
func TestFixedEndpoint_forms(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Topology)
	forms := map[string]func(t *testing.T, f *fixedEndpoint) *latchkey.Client{
		"opened RESP2": func(t *testing.T, f *fixedEndpoint) *latchkey.Client {
			option := f.pair.Master.Options(f.tap.Addr())
			option.AlwaysRESP2, option.ForceSingleClient = true, false
			c, err := latchkey.Open(within(t, soon), option, latchkey.Options{Label: latchkey.NoLabel})
			require.NoError(t, err)
			return c
		},
		"lazy": func(t *testing.T, f *fixedEndpoint) *latchkey.Client {
			c, err := latchkey.Open(within(t, soon), rueidis.ClientOption{InitAddress: []string{f.tap.Addr()}}, latchkey.Options{LazyConnect: true})
			require.NoError(t, err)
			return c
		},
		"confirmed": func(t *testing.T, f *fixedEndpoint) *latchkey.Client {
			c, err := latchkey.Open(within(t, soon), rueidis.ClientOption{InitAddress: []string{f.tap.Addr()}}, latchkey.Options{Replicas: latchkey.Replicas{Min: 1, Timeout: time.Second}, RetryBudget: 10 * time.Second})
			require.NoError(t, err)
			return c
		},
		"borrowed RESP2": func(t *testing.T, f *fixedEndpoint) *latchkey.Client {
			option := f.pair.Master.Options(f.tap.Addr())
			option.AlwaysRESP2 = true
			return lent(t, option, latchkey.Options{})
		},
		"borrowed pipelining": func(t *testing.T, f *fixedEndpoint) *latchkey.Client {
			option := f.pair.Master.Options(f.tap.Addr())
			option.AlwaysPipelining = true
			option.PipelineMultiplex = 2
			return lent(t, option, latchkey.Options{})
		},
		"borrowed confirmed": func(t *testing.T, f *fixedEndpoint) *latchkey.Client {
			return lent(t, f.pair.Master.Options(f.tap.Addr()), latchkey.Options{Replicas: latchkey.Replicas{Min: 1, Timeout: time.Second}, RetryBudget: 10 * time.Second})
		},
		"borrowed small pool": func(t *testing.T, f *fixedEndpoint) *latchkey.Client {
			option := f.pair.Master.Options(f.tap.Addr())
			option.BlockingPoolSize = 3
			return lent(t, option, latchkey.Options{})
		},
		"borrowed without retry": func(t *testing.T, f *fixedEndpoint) *latchkey.Client {
			option := f.pair.Master.Options(f.tap.Addr())
			option.DisableRetry = true
			return lent(t, option, latchkey.Options{})
		},
	}
	for form, open := range forms {
		t.Run(form, func(t *testing.T) {
			f := newFixedEndpoint(t)
			has, wants := open(t, f), open(t, f)
			for _, c := range []*latchkey.Client{has, wants} {
				t.Cleanup(func() { _ = c.Close(within(t, after)) })
			}
			outlast(t, has, wants, func() (repair func()) {
				f.swap()
				return func() {}
			})
		})
	}
}

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
				next := f.swap()
				f.pair.Master, f.pair.Replicas[0] = next, f.pair.Master
				began := time.Now()
				mustUnlock(t, hold)
				mustUnlock(t, mustLock(t, client.NewFairLock("swapped too")))
				if took := time.Since(began); took > after+leeway/2 {
					t.Errorf("round %d: %v", i, took)
				}
			}
		})
	}
}
