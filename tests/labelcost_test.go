package tests

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// readsLabels matches the commands that read records of clients.
func readsLabels(c rig.Command) bool { return rig.MentionsPrefix("latchkey_client:")(c) }

// labelled makes locks that are held by n clients, with two locks each, and returns the labels by
// the names of the locks. The labels are on the server.
func labelled(t *testing.T, server *rig.Server, prefix string, n int) (want map[string]string, clients []*latchkey.Client) {
	t.Helper()
	admin, want := rig.NewAdmin(t, server), map[string]string{}
	for i := range n {
		client := connectLabelled(t, server, fmt.Sprintf("worker-%d", i))
		for _, name := range []string{fmt.Sprint(prefix, "a:", i), fmt.Sprint(prefix, "b:", i)} {
			mustLock(t, client.NewLock(name), latchkey.Lease(time.Hour))
			want[name] = client.Label()
		}
		written(t, admin, client)
		clients = append(clients, client)
	}
	return want, clients
}

// labelsOf walks, and returns the labels by the names of the locks.
func labelsOf(t *testing.T, client *latchkey.Client, pattern string) map[string]string {
	t.Helper()
	got := map[string]string{}
	for name, o := range allObjects(t, client, pattern) {
		got[name] = o.Holders[0].Label
	}
	return got
}

// A client that walks again and again does not read the same labels each time. But it reads all
// notes of clients that have some, and learns of a first note within some seconds.
func TestLabelCost_of_a_walk(t *testing.T) {
	t.Parallel()
	server, prefix := rig.Shared(), rig.Name(t)+":"
	want, clients := labelled(t, server, prefix, 5)
	tap := rig.NewTap(t, server)
	looks := connectVia(t, server, tap.Addr(), latchkey.Options{Label: "looks"})
	reads := func() (n int, err error) {
		tap.Forget()
		if got := labelsOf(t, looks, allUnder(prefix)); !maps.Equal(got, want) {
			err = fmt.Errorf("%v", got)
		}
		for _, c := range tap.Commands() {
			if readsLabels(c) {
				n++
			}
		}
		return n, err
	}
	assert.NoError(t, rig.InTime(t, func(before int) error { // the client reads them again after some seconds
		first, err := reads()
		again, failed := reads()
		if before == 0 && first == 0 || again > 0 {
			failed = fmt.Errorf("%d commands for labels, and then %d", first, again)
		}
		return errors.Join(err, failed)
	}))

	name := prefix + "noted"
	note := func() (note string) {
		rig.Eventually(t, soon, "a note", func() error { // a walk on a busy machine leaves out what takes a second
			if note = allObjects(t, looks, allUnder(name))[name].Holders[0].Note; note == "" {
				rest(50 * time.Millisecond)
				return errors.New("there is none")
			}
			return nil
		})
		return note
	}
	lock := clients[0].NewLock(name)
	hold := mustLock(t, lock, latchkey.Note("first"))
	assert.Equal(t, "first", note(), "of a client without notes before")
	other := connectLabelled(t, server, "also looks")
	for i := range 3 {
		text := fmt.Sprint("next ", i)
		inner, err := lock.Lock(hold.Context(t.Context()), latchkey.Note(text))
		require.NoError(t, err)
		shows(t, other, name, "worker-0", text)
		assert.Equal(t, text, note(), "at once")
		mustUnlock(t, inner)
		shows(t, other, name, "worker-0", "first")
		assert.Equal(t, "first", note(), "at once")
	}
}

// A query sends its commands for labels together, to whatever nodes: it does not wait for one to
// send another.
func TestLabelCost_in_one_round_trip(t *testing.T) {
	t.Parallel()
	const n = 12
	server, name := rig.Shared(), rig.Name(t)
	records := map[string]bool{}
	for i := range n {
		client := connectLabelled(t, server, fmt.Sprintf("reader-%d", i))
		mustLock(t, client.NewRWLock(name).Reader(), latchkey.Lease(time.Hour))
		records[recordOf(client)] = true
	}
	tap := rig.NewTap(t, server)
	looks := connectVia(t, server, tap.Addr(), latchkey.Options{Label: "looks"})
	_, err := looks.Inspect(t.Context(), name) // the servers know the script now
	require.NoError(t, err)
	assert.NoError(t, rig.InTime(t, func(int) error { // a query for labels has a second
		tap.Forget()
		held := tap.HoldReplies(readsLabels)
		defer held.Release()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan error, 1)
		go func() {
			_, err := looks.Inspect(ctx, name)
			done <- err
		}()
		for tick := time.Tick(time.Millisecond); ; {
			err := missing(records, tap.Commands())
			select {
			case failed := <-done:
				return errors.Join(failed, err)
			case <-tick:
				if err == nil {
					return nil
				}
			}
		}
	}))
}

// missing returns an error if the commands do not mention all keys.
func missing(keys map[string]bool, commands []rig.Command) error {
	found := map[string]bool{}
	for _, c := range commands {
		for _, arg := range c.Args {
			if keys[arg] && strings.HasPrefix(arg, "latchkey_client:") {
				found[arg] = true
			}
		}
	}
	if len(found) < len(keys) {
		return fmt.Errorf("%d of %d records are asked for", len(found), len(keys))
	}
	return nil
}
