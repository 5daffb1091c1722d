package latchkeytest_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/latchkeytest"
)

func TestURLIsASingleServer(t *testing.T) {
	server := latchkeytest.NewServer(t)
	client := raw(t, server)
	assert.Equal(t, rueidis.ClientModeStandalone, client.Mode())
	url := server.URL()
	assert.Equal(t, url, server.URL(), "one server has one address")
}

func TestConnectAndClientMeet(t *testing.T) {
	server := latchkeytest.NewServer(t)
	connected, err := latchkey.Connect(t.Context(), server.URL(), latchkey.Options{})
	require.NoError(t, err)
	defer closeClient(t, connected)

	hold, err := connected.NewLock("orders").TryLock(t.Context())
	require.NoError(t, err)
	_, err = server.Client().NewLock("orders").TryLock(t.Context())
	require.ErrorIs(t, err, latchkey.ErrNotAcquired)
	require.NoError(t, hold.Unlock(t.Context()))
}

func TestRefuse(t *testing.T) {
	server := latchkeytest.NewServer(t)
	orders := server.Client().NewLock("orders")

	server.Refuse("NOPERM this user has no permissions to run the 'evalsha' command")
	_, err := orders.TryLock(t.Context())
	var refused *rueidis.RedisError
	require.ErrorAs(t, err, &refused)
	assert.Contains(t, err.Error(), "NOPERM")

	server.Refuse("")
	_, err = orders.TryLock(t.Context())
	require.NoError(t, err)
}

func TestStopCutsAndRefuses(t *testing.T) {
	server := latchkeytest.NewServer(t)
	client := raw(t, server)
	require.NoError(t, client.Do(t.Context(), client.B().Set().Key("k").Value("v").Build()).Error())

	server.Stop()
	server.Stop()
	require.Error(t, client.Do(t.Context(), client.B().Incr().Key("n").Build()).Error())
	_, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: client.addresses(), DisableCache: true})
	require.Error(t, err, "a stopped server lets nobody in")

	server.Restart()
	server.Restart()
	value, err := client.Do(t.Context(), client.B().Get().Key("k").Build()).ToString()
	require.NoError(t, err, "the same client comes back to the same address")
	assert.Equal(t, "v", value, "data outlives a stop")
}

func TestStopReachesClientsInMemory(t *testing.T) {
	server := latchkeytest.NewServer(t)
	orders := server.Client(latchkey.Options{RetryBudget: 500 * time.Millisecond}).NewLock("orders")
	hold, err := orders.Lock(t.Context())
	require.NoError(t, err)

	server.Stop()
	_, err = orders.TryLock(t.Context())
	require.Error(t, err)

	server.Restart()
	require.NoError(t, hold.Unlock(t.Context()), "the lease outlived the interruption")
}

func TestStoppedServerCloses(t *testing.T) {
	server, err := latchkeytest.Start()
	require.NoError(t, err)
	_, err = server.Client().NewLock("orders").TryLock(t.Context())
	require.NoError(t, err)

	server.Stop()
	server.Refuse("LOADING Redis is loading the dataset in memory")
	began := time.Now()
	server.Close()
	server.Close()
	assert.Less(t, time.Since(began), 3*time.Second, "closing waited for a server that was away")
}

func TestClosingReleasesPort(t *testing.T) {
	server, err := latchkeytest.Start()
	require.NoError(t, err)
	url := server.URL()
	server.Close()
	_, err = latchkey.Connect(t.Context(), url, latchkey.Options{})
	require.Error(t, err)
}

func TestClientTakesOneSetOfOptions(t *testing.T) {
	server, err := latchkeytest.Start()
	require.NoError(t, err)
	defer server.Close()
	assert.PanicsWithValue(t, "latchkeytest: making a client: 2 sets of options, want at most one", func() {
		server.Client(latchkey.Options{}, latchkey.Options{})
	})
	assert.Panics(t, func() { server.Client(latchkey.Options{Lease: -1}) })
}

func TestMisuseEndsTheTest(t *testing.T) {
	tb := &failing{TB: t}
	server := latchkeytest.NewServer(tb)
	assert.PanicsWithValue(t, fatal("latchkeytest: Advance needs a server with ManualTime()"), func() {
		server.Advance(time.Second)
	})
}

// failing is a test whose Fatalf can be seen.
type failing struct{ testing.TB }

type fatal string

func (f *failing) Fatalf(_ string, args ...any) { panic(fatal(args[0].(string))) }

// rawClient talks to the server without latchkey.
type rawClient struct {
	rueidis.Client
}

func raw(t *testing.T, server *latchkeytest.Server) rawClient {
	t.Helper()
	option, err := rueidis.ParseURL(server.URL())
	require.NoError(t, err)
	option.DisableCache = true
	client, err := rueidis.NewClient(option)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return rawClient{client}
}

func (c rawClient) addresses() (addresses []string) {
	for address := range c.Nodes() {
		addresses = append(addresses, address)
	}
	return addresses
}

// serverTime returns the time of the server's own clock.
func (c rawClient) serverTime(t *testing.T) time.Time {
	t.Helper()
	parts, err := c.Do(t.Context(), c.B().Time().Build()).AsStrSlice()
	require.NoError(t, err)
	seconds, err := strconv.ParseInt(parts[0], 10, 64)
	require.NoError(t, err)
	micros, err := strconv.ParseInt(parts[1], 10, 64)
	require.NoError(t, err)
	return time.Unix(seconds, micros*int64(time.Microsecond))
}

func closeClient(t *testing.T, client *latchkey.Client) {
	t.Helper()
	require.NoError(t, client.Close(context.WithoutCancel(t.Context())))
}
