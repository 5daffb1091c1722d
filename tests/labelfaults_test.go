package tests

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// A record that the server has lost comes back, notes included, when the client writes it again.
func TestLabelFaults_record_is_lost(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	admin := rig.NewAdmin(t, server)
	client, other := connectLabelled(t, server, "notes"), connectLabelled(t, server, "looks")
	hold := mustLock(t, client.NewLock(name), latchkey.Note("order 42"))
	shows(t, other, name, "notes", "order 42")
	admin.Do("DEL", recordOf(client))
	shows(t, other, name, "", "")
	again := mustLock(t, client.NewLock(name+"2"), latchkey.Lease(2*time.Hour)) // longer than the record lasts
	shows(t, other, name, "notes", "order 42")
	mustUnlock(t, again)
	mustUnlock(t, hold)
}

// lines is a log that any goroutine may write.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// A user without rights on the records of clients can use locks, logs this once, and sees owners by
// their ids.
func TestLabelFaults_permission_is_missing(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Settings)
	server := rig.Fresh(t)
	grant(t, server, "narrow", strings.ReplaceAll(documentedRights(t, 0), "~latchkey_client:*", ""))
	log := &lines{}
	connectAs := func() *latchkey.Client {
		client, err := latchkey.Connect(t.Context(), server.URLAs("narrow", "secret"), latchkey.Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, client.Close(within(t, soon))) })
		return client
	}
	client, other := connectAs(), connectAs()
	for range 3 {
		hold := mustLock(t, client.NewLock("orders:1"), latchkey.Note("order 42"))
		found, err := other.Inspect(t.Context(), "orders:1")
		require.NoError(t, err)
		assert.Equal(t, []latchkey.Holder{{Owner: hold.Owner(), Count: 1}}, found.Holders)
		_, err = other.NewLock("orders:1").TryLock(t.Context())
		require.ErrorIs(t, err, latchkey.ErrNotAcquired)
		mustUnlock(t, hold)
	}
	rig.Eventually(t, soon, "the line in the log", func() error { return says("refuses the label", errorOf(log.String())) })
	assert.LessOrEqual(t, strings.Count(log.String(), "refuses the label"), 2, "once for each client")
}

// errorOf returns a text as an error, for says.
func errorOf(text string) error { return textError(text) }

type textError string

func (e textError) Error() string { return string(e) }

// A server that is out of memory keeps the records that it has, and Close removes them.
func TestLabelFaults_out_of_memory(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Settings)
	server := rig.Fresh(t)
	admin := rig.NewAdmin(t, server)
	client, other := connectLabelled(t, server, "notes"), connectLabelled(t, server, "looks")
	hold := mustLock(t, client.NewLock("orders"), latchkey.Note("order 42"))
	shows(t, other, "orders", "notes", "order 42")
	admin.Do("CONFIG", "SET", "maxmemory", "1")
	_, err := client.NewLock("orders:2").TryLock(t.Context(), latchkey.Note("order 43"))
	require.Error(t, err)
	shows(t, other, "orders", "notes", "order 42")
	mustUnlock(t, hold)
	require.NoError(t, client.Close(t.Context()))
	assert.False(t, admin.Exists(recordOf(client)))
	admin.Do("CONFIG", "SET", "maxmemory", "0")
}

// A silent server does not delay Close for a label.
func TestLabelFaults_silence(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Process)
	server := rig.Fresh(t)
	client := connectLabelled(t, server, "notes")
	mustUnlock(t, mustLock(t, client.NewLock("orders")))
	written(t, rig.NewAdmin(t, server), client)
	server.Pause(t)
	defer server.Resume(t)
	closed := make(chan error, 1)
	go func() { closed <- client.Close(context.Background()) }()
	rig.Await(t, soon, "Close", closed)
}

// Holds without a note cost nothing more once the label is written. A hold with a note costs one
// command at most.
func TestLabelFaults_costs(t *testing.T) {
	t.Parallel()
	const passes = 20
	server, name, tap := rig.Shared(), rig.Name(t), rig.NewTap(t, rig.Shared())
	client := connectVia(t, server, tap.Addr(), latchkey.Options{Label: "notes"})
	lock := client.NewLock(name)
	mustUnlock(t, mustLock(t, lock))
	written(t, rig.NewAdmin(t, server), client)
	sent := func(options ...latchkey.LockOption) int {
		tap.Forget()
		for range passes {
			mustUnlock(t, mustLock(t, lock, options...))
		}
		return len(mentioning(tap, recordOf(client)))
	}
	assert.Zero(t, sent())
	noted := sent(latchkey.Note("order 42"))
	assert.Positive(t, noted)
	assert.LessOrEqual(t, noted, passes)
	assert.LessOrEqual(t, sent(latchkey.Lease(2*time.Minute)), 2) // longer than the refresh of the label
}

// A server that refuses to name connections can be used.
func TestLabelFaults_connections_without_names(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Settings)
	server := rig.Fresh(t)
	if server.Watched() || server.Clustered() {
		t.Skip("about the connection to one server")
	}
	grant(t, server, "narrow", documentedRights(t, 0))
	client, err := latchkey.Connect(t.Context(), server.URLAs("narrow", "secret")+"?protocol=2", latchkey.Options{})
	require.NoError(t, err)
	mustUnlock(t, mustLock(t, client.NewLock("orders:1")))
	require.NoError(t, client.Close(t.Context()))
	denied, err := rig.NewAdmin(t, server).Do("ACL", "LOG").ToArray()
	require.NoError(t, err)
	assert.NotEmpty(t, denied)
}
