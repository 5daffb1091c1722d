package interop

import (
	"slices"
	"strings"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// place is where both sides meet: one server, or a cluster.
type place struct {
	url   string
	where fields // the same for the driver
	ears  ears
}

// ears tell whether somebody listens to a channel that has the name in it.
type ears func(name string) bool

// onServer is the server that all tests share.
func onServer(t *testing.T) place {
	t.Helper()
	server := rig.Shared()
	admin := rig.NewAdmin(t, server)
	return place{
		url: server.URL(), where: fields{"address": "redis://" + server.Addr()},
		ears: func(name string) bool { return len(admin.Channels(name)) > 0 },
	}
}

// onCluster is a cluster, with sharded messages or with classic ones.
func onCluster(t *testing.T, cluster *rig.Cluster, sharded bool) place {
	t.Helper()
	which := "CHANNELS"
	if sharded {
		which = "SHARDCHANNELS"
	}
	nodes := eachNode(t, cluster.URL())
	return place{
		url: cluster.URL(), where: fields{"cluster": "redis://" + addresses(cluster.URL())[0]},
		ears: func(name string) bool {
			return slices.ContainsFunc(nodes, func(node rueidis.Client) bool { return heardOn(t, node, which, name) })
		},
	}
}

// addresses are the servers that a URL names.
func addresses(text string) []string {
	return rueidis.MustParseURL(text).InitAddress
}

// eachNode opens a connection to each server that a URL names.
func eachNode(t *testing.T, url string) (nodes []rueidis.Client) {
	t.Helper()
	for _, address := range addresses(url) {
		node, err := rueidis.NewClient(rueidis.ClientOption{
			InitAddress: []string{address}, ForceSingleClient: true, DisableCache: true,
		})
		require.NoError(t, err)
		t.Cleanup(node.Close)
		nodes = append(nodes, node)
	}
	return nodes
}

// heardOn reports whether a channel of a node, of one of its two kinds, has the name in
// it.
func heardOn(t *testing.T, node rueidis.Client, which, name string) bool {
	t.Helper()
	channels, err := node.Do(within(t, soon), node.B().Arbitrary("PUBSUB", which).Build()).AsStrSlice()
	require.NoError(t, err)
	return slices.ContainsFunc(channels, func(channel string) bool { return strings.Contains(channel, name) })
}

// connect opens a client of this library at the place.
func (p place) connect(t *testing.T, options ...latchkey.Options) *latchkey.Client {
	t.Helper()
	return connect(t, p.url, options...)
}

// java opens a client of Redisson there.
func (p place) java(t *testing.T, version string, settings ...fields) *java {
	t.Helper()
	return openIn(t, sharedJVM(t, version), p.where, settings...)
}

// raw opens a plain client there.
func (p place) raw(t *testing.T) rueidis.Client {
	t.Helper()
	client, err := openRaw(p.url)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}

// openRaw finds out by itself whether the URL is that of a cluster.
func openRaw(url string) (rueidis.Client, error) {
	option, err := rueidis.ParseURL(url)
	if err != nil {
		return nil, err
	}
	option.DisableCache = true
	return rueidis.NewClient(option)
}
