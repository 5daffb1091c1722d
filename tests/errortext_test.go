package tests

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// The texts of errors. Each test covers one request of users.

// text checks the text of an error against a regular expression.
func text(t *testing.T, want string, err error) {
	t.Helper()
	require.Error(t, err)
	assert.Regexp(t, want, err.Error())
}

// says is text for checks that are retried.
func says(want string, err error) error {
	if err == nil || !regexp.MustCompile(want).MatchString(err.Error()) {
		return fmt.Errorf("%w, which is not %s", err, want)
	}
	return nil
}

// The error for a busy lock names the holder and the rest of the lease, after an attempt and after
// a wait. The client sends no extra query for that.
func TestTextBusy(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	for _, k := range append(kinds, readKind) {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			name, holding := rig.Name(t), k
			if k.name == readKind.name {
				holding = writeKind
			}
			hold := mustLock(t, holding.open(connect(t, server), name), latchkey.Lease(5*time.Minute))
			isBusy(t, k.open(connect(t, server), name), `held by `+hold.Owner().String())
		})
	}
}

// isBusy checks the errors of a lock whose holder has less than five minutes left. why describes
// the holder.
func isBusy(t *testing.T, lock anyLock, why string) {
	t.Helper()
	const left, ends = `, (4m\d+s|5m) left`, `(; outcome unknown)?$` // a query may be in flight when the wait ends
	_, err := lock.TryLock(t.Context())
	text(t, `^latchkey: try lock "`+lock.Name()+`": not acquired: `+why+left+`$`, err)
	err = refused(t, func(wait latchkey.WaitOption) error {
		_, err := lock.Lock(t.Context(), wait)
		return err
	})
	text(t, `^latchkey: lock "`+lock.Name()+`": not acquired: `+why+left+waitIsOver+ends, err)
	for given := 200 * time.Millisecond; ; given *= 2 {
		_, err := lock.Lock(within(t, given))
		if !errors.Is(err, latchkey.ErrUnavailable) || given > soon {
			text(t, `not acquired: `+why+left+`; context deadline exceeded`+ends, err)
			return
		}
	}
}

// waitIsOver is the text about a wait that has ended, whatever its length.
const waitIsOver = `; the wait of [\d.]+m?s is over`

// The error for a writer names one of the readers, the one whose lease ends last. A new reader is
// told that writers wait.
func TestTextBusyReaders(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	open := func() *latchkey.RWLock { return connect(t, server).NewRWLock(name) }
	writer := open().Writer()
	reader := mustLock(t, open().Reader(), latchkey.Lease(5*time.Minute)).Owner().String()
	isBusy(t, writer, `held by reader `+reader)
	brief := mustLock(t, open().Reader(), latchkey.Lease(2*time.Minute))
	isBusy(t, writer, `held by reader `+reader+` and others`)
	mustUnlock(t, brief)
	isBusy(t, writer, `held by reader `+reader)

	ctx, cancel := context.WithCancel(t.Context())
	waiting := lockInBackground(ctx, writer)
	rig.Eventually(t, soon, "readers are kept out", func() error {
		hold, err := open().Reader().TryLock(t.Context())
		if err == nil {
			mustUnlock(t, hold)
		}
		return says(`^latchkey: try lock "`+name+`": not acquired: waiting writers go first$`, err)
	})
	cancel()
	require.ErrorIs(t, rig.Await(t, soon, "the writer", waiting).err, context.Canceled)
}

// A client that reads a lock with others does not take their hold for its own.
func TestTextBusyReadersHere(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	client := connect(t, server)
	mustLock(t, client.NewRWLock(name).Reader())
	mustLock(t, connect(t, server).NewRWLock(name).Reader(), latchkey.Lease(5*time.Minute))
	_, err := client.NewRWLock(name).Writer().TryLock(t.Context())
	text(t, `not acquired: held by a reader of this process and others, (4m\d+s|5m) left$`, err)
}

// The error for a semaphore without enough permits says how many are free, and how many there are.
func TestTextBusyPermits(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	ctx := func(t *testing.T) context.Context { t.Helper(); return within(t, soon) }
	for what, open := range map[string]func(c *latchkey.Client, name string) permitSource{
		"Semaphore": func(c *latchkey.Client, name string) permitSource {
			s := c.NewSemaphore(name)
			return permitSource{s.TrySetPermits, s.TryAcquireN,
				func(ctx context.Context, n int, wait latchkey.WaitOption) error {
					return s.AcquireN(ctx, n, wait)
				}}
		},
		"PermitSemaphore": func(c *latchkey.Client, name string) permitSource {
			s := c.NewPermitSemaphore(name)
			return permitSource{s.TrySetPermits,
				func(ctx context.Context, n int) error { _, err := s.TryAcquireN(ctx, n); return err },
				func(ctx context.Context, n int, wait latchkey.WaitOption) error {
					_, err := s.AcquireN(ctx, n, wait)
					return err
				}}
		},
		"FairSemaphore": func(c *latchkey.Client, name string) permitSource {
			s := c.NewFairSemaphore(name)
			return permitSource{s.TrySetPermits,
				func(ctx context.Context, n int) error { _, err := s.TryAcquireN(ctx, n); return err },
				func(ctx context.Context, n int, wait latchkey.WaitOption) error {
					_, err := s.AcquireN(ctx, n, wait)
					return err
				}}
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			name := rig.Name(t)
			holder, other := open(connect(t, server), name), open(connect(t, server), name)
			_, err := holder.set(ctx(t), 4)
			require.NoError(t, err)
			require.NoError(t, holder.try(ctx(t), 2))
			text(t, `^latchkey: try acquire "`+name+`": not acquired: only 2 permits are free: 2 of 4 acquired$`, other.try(ctx(t), 3))
			require.NoError(t, holder.try(ctx(t), 1))
			text(t, `: not acquired: only 1 permit is free: 3 of 4 acquired$`, other.try(ctx(t), 2))
			require.NoError(t, holder.try(ctx(t), 1))
			text(t, `: not acquired: no permit is free: 4 of 4 acquired$`, other.try(ctx(t), 1))
			text(t, `^latchkey: acquire "`+name+`": not acquired: no permit is free: 4 of 4 acquired`+waitIsOver+`(; outcome unknown)?$`,
				refused(t, func(wait latchkey.WaitOption) error { return other.wait(t.Context(), 1, wait) }))
		})
	}
}

// A free permit that somebody waits for in the queue of a fair semaphore is for that waiter.
func TestTextBusyPermitsOfWaiters(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	open := func() *latchkey.PermitSemaphore { return connect(t, server).NewFairSemaphore(name) }
	s := open()
	_, err := s.TrySetPermits(t.Context(), 3)
	require.NoError(t, err)
	_, err = s.AcquireN(within(t, soon), 2)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() { _, err := open().AcquireN(ctx, 2); gone <- err }()
	last := open()
	rig.Eventually(t, soon, "the waiter is in the queue", func() error {
		waiters, err := last.Waiters(t.Context())
		if err == nil && len(waiters) != 1 {
			err = fmt.Errorf("%d wait", len(waiters))
		}
		return err
	})
	_, err = last.TryAcquire(t.Context())
	text(t, `^latchkey: try acquire "`+name+`": not acquired: others go first: 2 of 3 acquired$`, err)
	cancel()
	require.ErrorIs(t, rig.Await(t, soon, "the waiter", gone), context.Canceled)
}

// permitSource is a semaphore of any kind.
type permitSource struct {
	set  func(ctx context.Context, n int, options ...latchkey.SetOption) (bool, error)
	try  func(ctx context.Context, n int) error
	wait func(ctx context.Context, n int, wait latchkey.WaitOption) error
}

// The error for a lock that stays taken after its release says who released it.
func TestTextKept(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	for _, k := range []kind{mutexKind, lockKind, fairKind} {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			name, client := rig.Name(t), connect(t, server)
			hold := mustLock(t, k.open(client, name), latchkey.AtLeast(5*time.Minute))
			mustUnlock(t, hold)
			for _, other := range []*latchkey.Client{client, connect(t, server)} {
				_, err := k.open(other, name).TryLock(t.Context())
				text(t, `^latchkey: try lock "`+name+`": not acquired: released by `+hold.Owner().String()+
					`, kept taken by its AtLeast, (4m\d+s|5m) left$`, err)
			}
		})
	}
}

// A lock that another call of the same client holds is busy as for others: the error says what is
// left of the lease, and the label and the note, which the client knows. That is the usual case in
// a server. Only a call whose context is one of those under which the hold works gets advice, in
// case it runs under that hold.
func TestTextHeldByThisClient(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	const here, advice = `not acquired: held by another call of this process, (4m\d+s|5m) left`, `(; outcome unknown)?: if this call runs under that hold, use the context of the hold$`
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		name := rig.Name(t)
		client := connect(t, server)
		lock := k.open(client, name)
		try := func(ctx context.Context) error { _, err := lock.TryLock(ctx); return err }
		wait := func(ctx context.Context) error {
			return refused(t, func(wait latchkey.WaitOption) error { _, err := lock.Lock(ctx, wait); return err })
		}
		outer, other := within(t, time.Minute), within(t, time.Minute)
		require.NoError(t, lock.Do(outer, func(context.Context) error {
			text(t, here+`$`, try(other))
			text(t, here+waitIsOver+`(; outcome unknown)?$`, wait(other))
			text(t, here+advice, try(outer))
			text(t, here+waitIsOver+advice, wait(outer))
			return nil
		}, latchkey.Lease(5*time.Minute)))
		mustUnlock(t, mustLock(t, lock))

		labelled := k.open(connect(t, server, latchkey.Options{Label: "web-1"}), name)
		hold := mustLock(t, labelled, latchkey.Note("order 42"), latchkey.Lease(5*time.Minute))
		_, err := labelled.TryLock(other)
		text(t, `held by another call of this process \(web-1, "order 42"\), (4m\d+s|5m) left$`, err)
		text(t, `held by another call of this process \(web-1, "order 42"\), (4m\d+s|5m) left`+waitIsOver+`(; outcome unknown)?$`,
			refused(t, func(wait latchkey.WaitOption) error { _, err := labelled.Lock(other, wait); return err }))
		mustUnlock(t, hold)
	})
}

// A client that has permits is told of the permits, not of its own.
func TestTextBusyPermitsHere(t *testing.T) {
	t.Parallel()
	client, ctx := connect(t, rig.Shared()), within(t, soon)
	pool, fair, plain := client.NewPermitSemaphore(rig.Name(t)), client.NewFairSemaphore(rig.Name(t)), client.NewSemaphore(rig.Name(t))
	for what, each := range map[string]struct {
		set  func(context.Context, int) error
		take func(...latchkey.WaitOption) error
	}{
		"PermitSemaphore": {pool.SetPermits, func(o ...latchkey.WaitOption) error {
			_, err := pool.Acquire(ctx, permitOptions(o)...)
			return err
		}},
		"FairSemaphore": {fair.SetPermits, func(o ...latchkey.WaitOption) error {
			_, err := fair.Acquire(ctx, permitOptions(o)...)
			return err
		}},
		"Semaphore": {plain.SetPermits, func(o ...latchkey.WaitOption) error {
			if o == nil {
				return plain.Acquire(ctx)
			}
			return plain.Acquire(ctx, o[0])
		}},
	} {
		require.NoError(t, each.set(ctx, 1))
		require.NoError(t, each.take(), what)
		for range 2 {
			text(t, `^latchkey: acquire ".*": not acquired(: no permit is free: 1 of 1 acquired`+waitIsOver+`|.*; outcome unknown)$`,
				refused(t, func(wait latchkey.WaitOption) error { return each.take(wait) }))
		}
	}
}

func permitOptions(waits []latchkey.WaitOption) (options []latchkey.PermitOption) {
	for _, o := range waits {
		options = append(options, o)
	}
	return options
}

// A reader whose own client reads, and keeps a writer waiting, learns that from the error, and from
// the log if it waits.
func TestTextReaderBehindItsOwnClient(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	lines := make(chan slog.Record, 100)
	logger := slog.New(logFunc(func(r slog.Record) {
		if strings.Contains(r.Message, "a call waits to read behind a writer") {
			lines <- r
		}
	}))
	client := connect(t, server, latchkey.Options{Logger: logger, Tuning: latchkey.Tuning{StaleWaiterTimeout: 2 * time.Second, PollCeiling: 200 * time.Millisecond}})
	reader, outer := client.NewRWLock(name).Reader(), within(t, time.Minute)
	require.NoError(t, reader.Do(outer, func(context.Context) error {
		ctx, cancel := context.WithCancel(t.Context())
		writer := lockInBackground(ctx, connect(t, server, latchkey.Options{Tuning: latchkey.Tuning{StaleWaiterTimeout: 2 * time.Second}}).NewRWLock(name).Writer())
		rig.Eventually(t, soon, "the writer waits", func() error {
			hold, err := reader.TryLock(outer)
			if err == nil {
				mustUnlock(t, hold)
			}
			return says(`not acquired: waiting writers go first, and wait for a call of this process: if this call runs under that hold, `+
				`use the context of the hold$`, err)
		})
		rig.Eventually(t, soon, "a reader waits for a while, which the log tells", func() error {
			mustUnlock(t, mustLock(t, reader)) // it is let in after a while
			if len(lines) == 0 {
				return errors.New("no line")
			}
			return nil
		})
		cancel()
		require.ErrorIs(t, rig.Await(t, soon, "the writer", writer).err, context.Canceled)
		return nil
	}))
}

// What is no lock is not "acquired": the error of a wait says what has not happened.
func TestTextOfOtherWaits(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	client, ctx := connect(t, server), within(t, time.Minute)
	check := func(want string, wait func(latchkey.WaitOption) error) {
		t.Helper()
		err := refused(t, wait)
		text(t, `^latchkey: `+want+waitIsOver+`(; outcome unknown)?$`, err)
		assert.NotContains(t, err.Error(), "not acquired")
	}
	latch := client.NewCountDownLatch(name + "l")
	text(t, `^latchkey: await "`+name+`l": not set: TrySetCount sets its count$`, latch.Await(ctx))
	text(t, `^latchkey: acquire "`+name+`s": not set: SetPermits sets its permits$`,
		client.NewSemaphore(name+"s").Acquire(ctx))
	check(`await ".*": not set`, func(wait latchkey.WaitOption) error { return latch.Await(ctx, wait, latchkey.AwaitSet()) })
	_, err := latch.TrySetCount(ctx, 2)
	require.NoError(t, err)
	check(`await ".*": not open, 2 left`, func(wait latchkey.WaitOption) error { return latch.Await(ctx, wait) })
	_, err = latch.CountDown(ctx)
	require.NoError(t, err)
	check(`await ".*": not open, 1 left`, func(wait latchkey.WaitOption) error { return latch.Await(ctx, wait) })
	check(`acquire ".*": not set`, func(wait latchkey.WaitOption) error {
		return client.NewSemaphore(name+"s").Acquire(ctx, wait, latchkey.AwaitSet())
	})
	check(`acquire ".*": not set`, func(wait latchkey.WaitOption) error {
		_, err := client.NewPermitSemaphore(name+"p").Acquire(ctx, wait, latchkey.AwaitSet())
		return err
	})

	leader := connect(t, server).NewElection(name + "e")
	l := mustLead(t, leader, "value", latchkey.Lease(5*time.Minute))
	e := client.NewElection(name + "e")
	led := `another leads: ` + leader.HoldFrom(l.Context(ctx)).Owner().String() + `, (4m\d+s|5m) left`
	check(`campaign ".*": `+led, func(wait latchkey.WaitOption) error { return firstOf(e.Campaign(ctx, "value", wait)) })
	text(t, `^latchkey: try campaign ".*": `+led+`$`, firstOf(e.TryCampaign(ctx, "value")))
	check(`campaign ".*": another leads: another call of this process, (4m\d+s|5m) left`,
		func(wait latchkey.WaitOption) error { return firstOf(leader.Campaign(ctx, "value", wait)) })
	mustResign(t, l)
}

// A party that gives up says how many had arrived.
func TestTextOfABarrier(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	client, other, ctx := connect(t, server, patient), connect(t, server, patient), within(t, time.Minute)
	err := refused(t, func(wait latchkey.WaitOption) error { return firstOf(client.NewBarrier(name, 3).Await(ctx, wait)) })
	text(t, `^latchkey: await ".*": (1|not all) of 3 parties arrived`+waitIsOver+`$`, err)

	for given := time.Second; ; given *= 2 {
		first := make(chan error, 1)
		go func() { first <- firstOf(other.NewBarrier(name, 3).Await(ctx)) }()
		rig.Eventually(t, soon, "one has arrived", func() error {
			s, err := client.NewBarrier(name, 3).State(ctx)
			if err == nil && s.Waiting != 1 {
				err = fmt.Errorf("%d wait", s.Waiting)
			}
			return err
		})
		err = firstOf(client.NewBarrier(name, 3).Await(ctx, latchkey.Wait(given)))
		require.ErrorIs(t, rig.Await(t, soon, "the first", first), latchkey.ErrBroken)
		if errors.Is(err, latchkey.ErrNotAcquired) || given > soon {
			break
		}
	}
	require.ErrorIs(t, err, latchkey.ErrNotAcquired)
	text(t, `^latchkey: await ".*": 2 of 3 parties arrived`+waitIsOver+`$`, err)
	text(t, `^latchkey: do ".*": (1|not all) of 3 parties arrived`+waitIsOver+`$`, refused(t, func(wait latchkey.WaitOption) error {
		return client.NewBarrier(name, 3).Do(ctx, func(context.Context) error { return nil }, wait)
	}))
}

// The error for a key of another kind names the key and its kind.
func TestTextWrongKind(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	client := connect(t, server)
	mustLock(t, client.NewLock(name))
	_, err := connect(t, server).NewMutex(name).TryLock(t.Context())
	assert.ErrorIs(t, err, latchkey.ErrWrongKind)
	text(t, `^latchkey: try lock "`+name+`": the key is a lock, not a mutex: use another name$`, err)
	_, err = connect(t, server).NewRWLock(name).Writer().TryLock(t.Context())
	text(t, `^latchkey: try lock "`+name+`": the key is a lock, not a read/write lock: use another name$`, err)
}

// The error of a semaphore whose total is unknown says what works instead.
func TestTextUnknownTotal(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	rig.NewAdmin(t, server).Do("SET", name, "3") // as Redisson does
	err := connect(t, server).NewSemaphore(name).SetPermits(t.Context(), 5)
	require.ErrorIs(t, err, latchkey.ErrNotSet)
	text(t, `^latchkey: set permits "`+name+`": not set by Latchkey, so its total is unknown: use AddPermits, or delete it first$`, err)
}

// The error of several locks that cannot be one names all that were given.
func TestTextInvalidMembers(t *testing.T) {
	t.Parallel()
	client := connect(t, rig.Shared())
	a, unnamed := client.NewLock("a"), client.NewLock("")
	for want, l := range map[string]anyLock{
		`"multi\(a, \)": member 2: invalid argument: the name is empty`: latchkey.NewMultiLock(a, unnamed),
		`"multi\(a, nil\)": invalid argument: member 2 is nil`:          latchkey.NewMultiLock(a, nil),
		`"red\(a, a\)": invalid argument: members 1 and 2 are the same`: latchkey.NewRedLock(latchkey.RedLockOptions{}, a, a),
		`"multi\(\)": invalid argument: there are no members`:           latchkey.NewMultiLock(),
	} {
		_, err := l.TryLock(t.Context())
		text(t, `^latchkey: try lock `+want, err)
	}
}

// The error of an extension says only once that the hold is over. For an invalid extension it names
// operation and lock.
func TestTextExtend(t *testing.T) {
	t.Parallel()
	name := rig.Name(t)
	hold := mustLock(t, connect(t, rig.Shared()).NewLock(name))
	text(t, `^latchkey: extend "`+name+`": invalid argument: the extension 0s`, hold.Extend(t.Context(), 0))
	mustUnlock(t, hold)
	text(t, `^latchkey: extend "`+name+`": not held$`, hold.Extend(t.Context(), time.Minute))
}

// The error for an unreachable server says once that it is unavailable, and why.
func TestTextUnavailable(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Process)
	server := rig.Fresh(t)
	client := connect(t, server, brief)
	server.Kill(t)
	_, err := client.NewLock("x").TryLock(t.Context())
	text(t, `^latchkey: try lock "x": server unavailable: .*`, err)
	rig.Eventually(t, soon, "it says why", func() error {
		_, err := client.NewLock("x").TryLock(t.Context())
		return says(`^latchkey: try lock "x": server unavailable: dial tcp .*connection refused$`, err)
	})
	_, err = client.NewLock("x").Lock(t.Context(), latchkey.Wait(300*time.Millisecond))
	text(t, `^latchkey: lock "x": server unavailable: dial tcp [^;]*connection refused; the wait of 300ms is over$`, err)
}

// Each error says which operation failed, by the name under which the caller knows it.
func TestTextNamesTheOperation(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	ctx, client := within(t, soon), connect(t, server)
	pool, fair := client.NewPermitSemaphore(name+"p"), client.NewFairSemaphore(name+"f")
	require.NoError(t, pool.SetPermits(ctx, 9))
	require.NoError(t, fair.SetPermits(ctx, 9))
	permit := func(p *latchkey.Permit, err error) *latchkey.Permit {
		t.Helper()
		require.NoError(t, err)
		require.NoError(t, p.Release(ctx))
		return p
	}
	hold := func(l anyLock) *latchkey.Hold {
		t.Helper()
		h := mustLock(t, l)
		mustUnlock(t, h)
		return h
	}
	p, f := permit(pool.Acquire(ctx)), permit(fair.Acquire(ctx))
	l, err := client.NewElection(name+"e").Campaign(ctx, "me")
	require.NoError(t, err)
	require.NoError(t, l.Resign(ctx))
	lock := hold(client.NewLock(name + "l"))
	group := latchkey.NewMultiLock(client.NewLock(name+"1"), client.NewLock(name+"2"))
	both := hold(group)
	writer, err := client.NewRWLock(name + "w").Writer().Lock(ctx)
	require.NoError(t, err)
	mustUnlock(t, writer)
	lost, err := pool.Acquire(ctx)
	require.NoError(t, err)
	require.NoError(t, firstOf(connect(t, server).NewPermitSemaphore(pool.Name()).Release(ctx, lost.ID())))
	for want, err := range map[string]error{
		`release "` + name + `p": not held`:            p.Release(ctx),
		`extend "` + name + `p": not held`:             p.Extend(ctx, time.Minute),
		`release "` + name + `f": not held`:            f.Release(ctx),
		`release "` + name + `p": not held: hold lost`: lost.Release(ctx),
		`resign "` + name + `e": not held`:             l.Resign(ctx),
		`proclaim "` + name + `e": not held`:           l.Proclaim(ctx, "me"),
		`unlock "` + name + `l": not held`:             lock.Unlock(ctx),
		`extend "` + name + `l": not held`:             lock.Extend(ctx, time.Minute),
		`unlock "` + both.Name() + `": not held`:       both.Unlock(ctx),
		`extend "` + both.Name() + `": not held`:       both.Extend(ctx, time.Minute),
		`downgrade "` + name + `w": not held`:          firstOf(writer.Downgrade(ctx)),
	} {
		if assert.Error(t, err, want) {
			assert.True(t, strings.HasPrefix(err.Error(), "latchkey: "+want), err.Error())
		}
	}

	// The release at the end of a Do.
	err = pool.Do(ctx, func(ctx context.Context) error { return latchkey.PermitFrom(ctx).Release(ctx) })
	require.ErrorIs(t, err, latchkey.ErrNotHeld)
	assert.NotContains(t, err.Error(), "unlock")
	states, err := pool.Release(ctx, p.ID())
	assert.Equal(t, []latchkey.PermitState{latchkey.PermitUnknown}, states)
	text(t, `^latchkey: release "`+name+`p": not held$`, err)
}

// Without an answer, the errors name the operation too.
func TestTextNamesTheOperationWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	server, name, ctx := rig.Shared(), rig.Name(t), within(t, soon)
	link := rig.NewLink(t, server)
	client := connectVia(t, server, link.Addr(), latchkey.Options{RetryBudget: 1500 * time.Millisecond, Lease: time.Minute})
	pool := client.NewPermitSemaphore(name + "p")
	require.NoError(t, pool.SetPermits(ctx, 9))
	p, err := pool.Acquire(ctx)
	require.NoError(t, err)
	own, err := pool.Acquire(ctx)
	require.NoError(t, err)
	l, err := client.NewElection(name+"e").Campaign(ctx, "me")
	require.NoError(t, err)
	link.Cut()
	text(t, `^latchkey: release "`+name+`p": outcome unknown`, p.Release(ctx))
	text(t, `^latchkey: release "`+name+`p": outcome unknown`, firstOf(pool.Release(ctx, own.ID())))
	text(t, `^latchkey: resign "`+name+`e": outcome unknown`, l.Resign(ctx))
	link.Restore()
}
