package tests

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// connectLabelled returns a client with the given label.
func connectLabelled(t testing.TB, server *rig.Server, label string) *latchkey.Client {
	t.Helper()
	return connect(t, server, latchkey.Options{Label: label})
}

// recordOf returns the key under which a client stores its label.
func recordOf(client *latchkey.Client) string { return "latchkey_client:{" + client.ID()[:18] + "}" }

// shows waits until another client sees that a lock has one holder, with this label and note.
func shows(t *testing.T, client *latchkey.Client, name, label, note string) {
	t.Helper()
	rig.Eventually(t, soon, "the label and the note", func() error {
		found, err := client.Inspect(t.Context(), name)
		if err == nil && (len(found.Holders) != 1 || found.Holders[0].Label != label || found.Holders[0].Note != note) {
			err = fmt.Errorf("held by %+v", found.Holders)
		}
		return err
	})
}

// written waits until the server knows the label of a client.
func written(t *testing.T, admin *rig.Admin, client *latchkey.Client) {
	t.Helper()
	rig.Eventually(t, soon, "the label is written", func() error {
		if !admin.Exists(recordOf(client)) {
			return fmt.Errorf("no %s", recordOf(client))
		}
		return nil
	})
}

// Inspection shows the label and the note of a holder of every kind of lock.
func TestLabel_of_holder(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		name := rig.Name(t)
		client, other := connectLabelled(t, server, "payments-1"), connectLabelled(t, server, "looks")
		lock := k.open(client, name)
		hold := mustLock(t, lock, latchkey.Note("order 42"))
		found, err := lock.Inspect(t.Context())
		require.NoError(t, err)
		want := []latchkey.Holder{{Owner: hold.Owner(), Label: "payments-1", Note: "order 42", Count: 1, Write: k.sided}}
		assert.Equal(t, want, found.Holders, "its own client knows at once")
		shows(t, other, name, "payments-1", "order 42")
		awaitHolders(t, want, func() (found []latchkey.Holder, err error) {
			for o, err := range other.Objects(t.Context(), quotePattern(name)) {
				if err != nil {
					return nil, err
				}
				found = append(found, o.Holders...)
			}
			return found, nil
		})
		unnamed, err := connect(t, server).Inspect(t.Context(), name)
		require.NoError(t, err)
		assert.Empty(t, unnamed.Holders[0].Label, "a client with NoLabel asks nobody")
		mustUnlock(t, hold)
	})
}

// awaitHolders asks until these are the holders. An answer may come without the labels, if the
// server takes longer than a second to tell them.
func awaitHolders(t *testing.T, want []latchkey.Holder, ask func() ([]latchkey.Holder, error)) {
	t.Helper()
	rig.Eventually(t, soon, "the holders", func() error {
		found, err := ask()
		if err == nil && !reflect.DeepEqual(found, want) {
			err = fmt.Errorf("%+v", found)
		}
		return err
	})
}

// The record has the documented form, expires by itself, and is removed by Close. A client with
// NoLabel, and one that holds nothing, have none.
func TestLabel_golden(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	admin := rig.NewAdmin(t, server)
	client, silent, idle := connectLabelled(t, server, "web-1:77"), connect(t, server), connectLabelled(t, server, "idle")
	_, err := idle.Inspect(t.Context(), name)
	require.NoError(t, err)
	mustUnlock(t, mustLock(t, silent.NewLock(name)))
	hold := mustLock(t, client.NewLock(name), latchkey.Note("order 42"))
	_, number, _ := strings.Cut(hold.Owner().String(), ":")
	shows(t, idle, name, "web-1:77", "order 42")
	golden(t, admin, recordOf(client), map[string]rig.Entry{recordOf(client): {
		Type: "hash", Hash: map[string]string{"label": "web-1:77", number: "order 42"}, TTL: goldenLease + 2*time.Minute,
	}})
	assert.False(t, admin.Exists(recordOf(silent)) || admin.Exists(recordOf(idle)))
	require.NoError(t, client.Close(t.Context()))
	assert.False(t, admin.Exists(recordOf(client)))
}

// The default is host:pid.
func TestLabel_default(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Stats)
	server, name := rig.Shared(), rig.Name(t)
	client, err := latchkey.Connect(t.Context(), server.URL(), latchkey.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, client.Close(within(t, soon))) })
	assert.Regexp(t, `^[^ :]+:\d+$`, client.Label())
	mustLock(t, client.NewLock(name))
	shows(t, connectLabelled(t, server, "looks"), name, client.Label(), "")
	assert.Contains(t, rig.NewAdmin(t, server).Text("CLIENT", "LIST"), " name=latchkey:"+client.Label()+" ")
}

// A label stays as long as the longest lease, and that of a lock that stays taken survives Close.
// The note of such a lock does not stay, and the note of another hold of the same owner is not
// shown for it.
func TestLabel_of_a_lock_that_stays_taken(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	client, other := connectLabelled(t, server, "cron-1"), connectLabelled(t, server, "looks")
	owner := client.NewOwner()
	hold := mustLock(t, client.NewLock(name), latchkey.AtLeast(time.Hour), latchkey.Note("of the run"), latchkey.As(owner))
	shows(t, other, name, "cron-1", "of the run")
	assert.Greater(t, rig.NewAdmin(t, server).PTTL(recordOf(client)), time.Hour)
	mustUnlock(t, hold)
	keeps := func() {
		var found latchkey.Object
		rig.Eventually(t, soon, "the label", func() (err error) {
			found, err = other.Inspect(t.Context(), name)
			if err == nil && (len(found.Holders) != 1 || found.Holders[0].Label != "cron-1") {
				err = fmt.Errorf("%+v", found.Holders)
			}
			return err
		})
		assert.True(t, found.Holders[0].Kept)
		assert.Empty(t, found.Holders[0].Note)
	}
	keeps()
	mustLock(t, client.NewLock(name+"another"), latchkey.Note("of another"), latchkey.As(owner))
	shows(t, other, name+"another", "cron-1", "of another")
	keeps()
	require.NoError(t, client.Close(t.Context()))
	keeps()
}

// Anybody may have written a label, so it is made safe for a terminal. A record of another type is
// ignored.
func TestLabel_that_somebody_else_has_written(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	admin := rig.NewAdmin(t, server)
	client, other := connectLabelled(t, server, "honest"), connectLabelled(t, server, "looks")
	hold := mustLock(t, client.NewLock(name))
	written(t, admin, client)
	_, number, _ := strings.Cut(hold.Owner().String(), ":")
	admin.Do("HSET", recordOf(client), "label", "a\x1b[2Jb\n\xff\u202e"+strings.Repeat("ü", 100), number, "\a")
	shows(t, other, name, "a[2Jb"+strings.Repeat("ü", 61), "")
	admin.Do("SET", recordOf(client), "data")
	shows(t, other, name, "", "")
	mustUnlock(t, hold)
	mustUnlock(t, mustLock(t, client.NewLock(name), latchkey.Note("order 43")))
}

// Each of several owners has its own label, on whatever nodes the labels are.
func TestLabel_of_many(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	want := map[string]string{}
	for i := range 5 {
		label, note := fmt.Sprintf("reader-%d", i), fmt.Sprintf("page %d", i)
		hold := mustLock(t, connectLabelled(t, server, label).NewRWLock(name).Reader(), latchkey.Note(note))
		want[hold.Owner().String()] = label + " " + note
	}
	other := connectLabelled(t, server, "looks")
	rig.Eventually(t, soon, "all labels", func() error {
		found, err := other.NewRWLock(name).Reader().Inspect(t.Context())
		got := map[string]string{}
		for _, h := range found.Holders {
			got[h.Owner.String()] = h.Label + " " + h.Note
		}
		if err == nil && fmt.Sprint(got) != fmt.Sprint(want) {
			err = fmt.Errorf("%v", got)
		}
		return err
	})
}

// A bad label or note is refused before anything is sent.
func TestLabel_bad(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 257)
	for _, bad := range []string{" ", "a\nb", "\x1b[2J", "\xff", "\u202e", long[:129]} {
		_, err := latchkey.Connect(t.Context(), "redis://nowhere.invalid:1", latchkey.Options{Label: bad})
		require.ErrorIs(t, err, latchkey.ErrInvalid)
	}
	client := connectLabelled(t, rig.Shared(), "notes")
	lock := client.NewLock(rig.Name(t))
	for _, bad := range []string{"", " ", "a\nb", "\xff", long} {
		_, err := lock.TryLock(t.Context(), latchkey.Note(bad))
		require.ErrorIs(t, err, latchkey.ErrInvalid)
		_, err = client.NewPermitSemaphore(rig.Name(t)).TryAcquire(t.Context(), latchkey.Note(bad))
		require.ErrorIs(t, err, latchkey.ErrInvalid)
	}
	_, err := connect(t, rig.Shared()).NewLock(rig.Name(t)).TryLock(t.Context(), latchkey.Note("order 42"))
	require.ErrorIs(t, err, latchkey.ErrInvalid, "a client with NoLabel has no notes")
	_, err = lock.TryLock(t.Context(), latchkey.Note("order 42"), latchkey.As(connectLabelled(t, rig.Shared(), "other").NewOwner()))
	require.ErrorIs(t, err, latchkey.ErrInvalid, "nor has a guest")
	mustUnlock(t, mustLock(t, lock, latchkey.Note(long[:256])))
}

// Permits show who holds them, and for what.
func TestLabel_of_permits(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	client, other := connectLabelled(t, server, "worker-1"), connectLabelled(t, server, "looks")
	s := client.NewPermitSemaphore(name)
	_, err := other.NewPermitSemaphore(name).Holders(t.Context())
	require.ErrorIs(t, err, latchkey.ErrNotSet)
	require.NoError(t, s.SetPermits(t.Context(), 5))
	forever, err := s.Acquire(t.Context(), latchkey.Lease(latchkey.NoExpiry))
	require.NoError(t, err)
	two, err := s.AcquireN(t.Context(), 2, latchkey.Lease(time.Minute), latchkey.Note("job 7"))
	require.NoError(t, err)
	rig.Eventually(t, soon, "the holders", func() error {
		got, err := other.NewPermitSemaphore(name).Holders(t.Context())
		if err != nil {
			return err
		}
		if len(got) != 3 {
			return fmt.Errorf("%+v", got)
		}
		for i, p := range got {
			note, lease := "job 7", time.Minute
			if i == 2 {
				note, lease = "", latchkey.NoExpiry
			}
			if p.Label != "worker-1" || p.Note != note || p.Lease > lease || p.Lease < lease-20*time.Second {
				return fmt.Errorf("%+v", got)
			}
		}
		return nil
	})
	got, err := s.Holders(t.Context())
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{forever.ID(), two[0].ID(), two[1].ID()}, []string{got[0].ID, got[1].ID, got[2].ID})
	for _, p := range append(two, forever) {
		require.NoError(t, p.Release(context.Background()))
	}
	got, err = s.Holders(t.Context())
	require.NoError(t, err)
	assert.Nil(t, got)
}

// A leader announces its label, so that no further query is needed.
func TestLabel_of_leader(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	leadership, err := connectLabelled(t, server, "node-1").NewElection(name).Campaign(t.Context(), "value")
	require.NoError(t, err)
	election := connect(t, server).NewElection(name)
	leader, err := election.Leader(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "node-1", leader.Label)
	require.NoError(t, leadership.Resign(t.Context()))
	next, err := election.Campaign(t.Context(), "value")
	require.NoError(t, err)
	leader, err = election.Leader(t.Context())
	require.NoError(t, err)
	assert.Empty(t, leader.Label, "that of the leader before is gone")
	require.NoError(t, next.Resign(t.Context()))
}

// Parties at a barrier have labels.
func TestLabel_of_parties(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	client, looks := connectLabelled(t, server, "party-1"), connectLabelled(t, server, "looks")
	go func() {
		_, err := client.NewBarrier(name, 2).Await(ctx)
		done <- err
	}()
	rig.Eventually(t, soon, "the party", func() error {
		state, err := looks.NewBarrier(name, 2).State(t.Context())
		if err == nil && (len(state.Who) != 1 || state.Who[0].Label != "party-1") {
			err = fmt.Errorf("%+v", state)
		}
		return err
	})
	cancel()
	require.Error(t, rig.Await(t, soon, "the party leaves", done))
}

// A waiter finds its own place, by the owner that it named and by its client.
func TestLabel_of_waiters(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	for _, k := range []kind{mutexKind, lockKind, fencedKind, fairKind, writeKind} {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			name := rig.Name(t)
			hold := mustLock(t, k.open(connectLabelled(t, server, "holder"), name))
			first, second := connectLabelled(t, server, "first"), connectLabelled(t, server, "second")
			me := second.NewOwner()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var left []<-chan acquisition
			for i, client := range []*latchkey.Client{first, second} {
				var options []latchkey.LockOption
				if k.reentrant && client == second {
					options = append(options, latchkey.As(me))
				}
				left = append(left, lockInBackground(ctx, k.open(client, name), options...))
				rig.Eventually(t, soon, "it waits, and is named", func() error {
					all, err := first.Waiters(t.Context(), name)
					if err == nil && (len(all) != i+1 || !slices.ContainsFunc(all, func(w latchkey.Waiter) bool { return w.Label == client.Label() })) {
						err = fmt.Errorf("%+v", all)
					}
					return err
				})
			}
			var all []latchkey.Waiter
			rig.Eventually(t, soon, "both are named", func() (err error) {
				all, err = second.Waiters(t.Context(), name)
				// On a busy machine one may join again.
				slices.SortFunc(all, func(a, b latchkey.Waiter) int { return strings.Compare(a.Label, b.Label) })
				if err == nil && (len(all) != 2 || all[0].Label != "first" || all[1].Label != "second") {
					err = fmt.Errorf("%+v", all)
				}
				return err
			})
			assert.Equal(t, []bool{false, true}, []bool{all[0].Mine, all[1].Mine})
			assert.True(t, all[0].Caller.IsZero())
			if k.reentrant {
				assert.Equal(t, me, all[1].Caller)
			}
			cancel()
			for _, each := range left {
				require.Error(t, rig.Await(t, soon, "the waiter leaves", each).err)
			}
			mustUnlock(t, hold)
		})
	}
}

// The error of a wait names the holder by its label, which is read during the wait. The error of an
// attempt does so if the label is known.
func TestTextBusyLabel(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	for _, k := range []kind{mutexKind, lockKind, fencedKind, fairKind} {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			name, client := rig.Name(t), connectLabelled(t, server, "web-1:77")
			hold := mustLock(t, k.open(client, name), latchkey.Lease(time.Minute))
			written(t, rig.NewAdmin(t, server), client)
			lock, want := k.open(connectLabelled(t, server, "waits"), name), `not acquired: held by web-1:77 \(owner `+hold.Owner().String()+`\)`
			assert.NoError(t, rig.InTime(t, func(int) error {
				_, err := lock.Lock(t.Context(), latchkey.Wait(time.Second))
				return says(want, err)
			}))
			rig.Eventually(t, soon, "an attempt, once the label is known", func() error {
				_, err := lock.TryLock(t.Context())
				if err = says(want+`, [2-5]\ds left$`, err); err != nil {
					_, _ = lock.Lock(t.Context(), latchkey.Wait(time.Second)) // reads it, if the waits before were too short
				}
				return err
			})
		})
	}
}
