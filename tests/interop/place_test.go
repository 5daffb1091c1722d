package interop

import (
	"context"
	"log/slog"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// place is where both sides meet: one server, a cluster, or a master that Sentinels watch.
type place struct {
	server *rig.Server
	admin  *rig.Admin
}

// here is the place that all tests share.
func here(t *testing.T) place {
	t.Helper()
	rig.Need(t, rig.Stats)
	return at(t, rig.Shared())
}

func at(t *testing.T, server *rig.Server) place {
	t.Helper()
	return place{server, rig.NewAdmin(t, server)}
}

// address returns the address of the place for the driver.
func (p place) address() fields {
	option := rueidis.MustParseURL(p.server.URL())
	var all []string
	for _, address := range option.InitAddress {
		all = append(all, "redis://"+address)
	}
	switch {
	case option.Sentinel.MasterSet != "":
		return fields{"sentinels": all, "masterName": option.Sentinel.MasterSet}
	case p.server.Clustered():
		return fields{"cluster": all[0]}
	}
	return fields{"address": all[0]}
}

// connect opens a client of this library at the place. The end of the test closes it.
func (p place) connect(t *testing.T, options ...latchkey.Options) *latchkey.Client {
	t.Helper()
	option := append(options, latchkey.Options{})[0]
	if option.Logger == nil {
		option.Logger = slog.New(slog.DiscardHandler)
	}
	client, err := latchkey.Connect(within(t, soon), p.server.URL(), option)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), soon)
		defer cancel()
		require.NoError(t, client.Close(ctx))
	})
	return client
}

// java opens a client of Redisson there, in the shared JVM of a version. Settings have the names
// from Redisson's documentation.
func (p place) java(t *testing.T, version string, settings ...fields) *java {
	t.Helper()
	return p.javaIn(t, sharedJVM(t, version), settings...)
}

// raw opens a plain client there.
func (p place) raw(t *testing.T) rueidis.Client {
	t.Helper()
	client, err := openRaw(p.server.URL())
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}

// openRaw finds out on its own whether the URL is that of a cluster.
func openRaw(url string) (rueidis.Client, error) {
	option, err := rueidis.ParseURL(url)
	if err != nil {
		return nil, err
	}
	option.DisableCache = true
	return rueidis.NewClient(option)
}
