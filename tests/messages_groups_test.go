package tests

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// An impossible group is refused with an error that names the invalid members and their positions.
func TestTextsOfGroupsThatCannotBe(t *testing.T) {
	client := connect(t, rig.Shared(), latchkey.Options{KeyPrefix: "w:"})
	a, b, rw := client.NewLock("a"), client.NewLock("b"), client.NewRWLock("rw")
	red := func(locks ...latchkey.Locker) *latchkey.MultiLock {
		return latchkey.NewRedLock(latchkey.RedLockOptions{}, locks...)
	}
	var none *latchkey.Lock
	for want, l := range map[string]latchkey.Locker{
		`there are no members`: latchkey.NewMultiLock(),
		`member 1 is nil`:      latchkey.NewMultiLock(nil, a),
		`member 3 is nil`:      red(a, b, none),
		`the read lock "rw" and the write lock "rw" cannot be members together: both need the key "w:rw"`:  latchkey.NewMultiLock(rw.Writer(), rw.Reader()),
		`the lock "a" and the mutex "a" cannot be members together: both need the key "w:a"`:               latchkey.NewMultiLock(client.NewMutex("a"), a),
		`the fair lock "a" and the lock "a" cannot be members together: both need the key "w:a"`:           latchkey.NewMultiLock(a, client.NewFairLock("a")),
		`the RedLock "red(a, b)" and the lock "a" cannot be members together: both need the key "w:a"`:     red(red(a, b), a),
		`the MultiLock "multi(a, b)" and the lock "b" cannot be members together: both need the key "w:b"`: red(latchkey.NewMultiLock(a, b), b),
		`members 1 and 3 are the same lock, "a"`:                                                           red(a, b, client.NewLock("a")),
		`RedLockOptions.RetryDelay -1s is negative`:                                                        latchkey.NewRedLock(latchkey.RedLockOptions{RetryDelay: -time.Second}, a),
		`RedLockOptions.MemberTimeout -1s is negative`:                                                     latchkey.NewRedLock(latchkey.RedLockOptions{MemberTimeout: -time.Second}, a),
	} {
		_, err := l.TryLock(t.Context())
		require.ErrorIs(t, err, latchkey.ErrInvalid)
		assert.ErrorContains(t, err, "invalid argument: "+want)
	}
	_, err := latchkey.NewMultiLock(a, latchkey.NewMultiLock()).TryLock(t.Context())
	assert.ErrorContains(t, err, `member 2: invalid argument: there are no members`)
	_, err = latchkey.NewMultiLock(a, b).TryLock(t.Context(), latchkey.As(client.NewOwner()))
	assert.EqualError(t, err, `latchkey: try lock "multi(a, b)": invalid argument: As does not apply to several locks: owners of different clients have nothing in common`)
}

// matches checks a text without the numbers of ports.
func matches(t *testing.T, pattern string, err error) {
	t.Helper()
	require.Error(t, err)
	assert.Regexp(t, "^"+pattern+"$", ports.ReplaceAllString(err.Error(), "SERVER"))
}

var ports = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// What the error of a member says about a server that is gone, and about one that is silent.
const (
	noServer = `(dial tcp SERVER: connect: connection refused|no answer from the server|no answer so far|no answer within 1s|not sent: there is no connection)`
	silent   = `(no answer within 1s|no answer so far|not sent: there is no connection|read tcp SERVER->SERVER: i/o timeout)`
)

// comesToSay repeats a call until its error says what it should: on a busy machine a member that
// could answer in time may be late.
func comesToSay(t *testing.T, pattern string, call func() error) {
	t.Helper()
	rig.Eventually(t, 3*soon, "the error "+pattern, func() error {
		err := call()
		if text := ports.ReplaceAllString(fmt.Sprint(err), "SERVER"); !regexp.MustCompile("^" + pattern + "$").MatchString(text) {
			return err
		}
		return nil
	})
}

// With three of five servers down, a RedLock is unavailable, and its error names the members and
// the reasons.
func TestTextOfARedLockWithoutServers(t *testing.T) {
	t.Parallel()
	m := newMasters(t, 5)
	l := latchkey.NewRedLock(latchkey.RedLockOptions{MemberTimeout: time.Second}, m.mutexes(t, "x")...)
	mustUnlock(t, mustLock(t, l))
	m.comesTo(t, "x", 0)
	m.links[0].Cut()
	m.links[2].Cut()
	m.links[3].Silence()
	down := `server unavailable: 2 of 5 members acquired, 3 needed; member 1 "x": ` + noServer + `; member 3 "x": ` + noServer + `; member 4 "x": ` + silent
	unavailable := func(acquire func() (*latchkey.Hold, error)) func() error {
		return func() error {
			m.comesTo(t, "x", 0, 1, 4) // the previous call gives them back in the background
			_, err := acquire()
			requireUnavailable(t, err)
			return err
		}
	}
	comesToSay(t, `latchkey: lock "red\(x, x, x, x, x\)": `+down+`; the wait of 2.5s is over`,
		unavailable(func() (*latchkey.Hold, error) {
			hold, err := l.Lock(t.Context(), latchkey.Wait(2500*time.Millisecond))
			require.NotErrorIs(t, err, context.DeadlineExceeded)
			return hold, err
		}))
	comesToSay(t, `latchkey: try lock "red\(x, x, x, x, x\)": `+down,
		unavailable(func() (*latchkey.Hold, error) { return l.TryLock(t.Context()) }))
	rig.Eventually(t, soon, "what lies underneath stays in the chain", func() error {
		_, err := l.TryLock(t.Context())
		var network *net.OpError
		if !errors.As(err, &network) { // there is no cause to unwrap while another command is dialing
			return err
		}
		return nil
	})
	comesToSay(t, `latchkey: lock "red\(x, x, x, x, x\)": `+down+`; context deadline exceeded`,
		unavailable(func() (*latchkey.Hold, error) {
			hold, err := l.Lock(within(t, 2500*time.Millisecond))
			require.ErrorIs(t, err, context.DeadlineExceeded, "the caller's own")
			return hold, err
		}))
	both := latchkey.NewMultiLock(l, connect(t, m.servers[1]).NewLock("y"))
	comesToSay(t, `latchkey: try lock "multi\(.*\)": try lock "red\(x, x, x, x, x\)": `+down,
		unavailable(func() (*latchkey.Hold, error) { return both.TryLock(t.Context()) }))
	m.comesTo(t, "x", 0, 1, 4)
}

// If others hold the members that are missing to a majority of the servers that answer, the lock is
// not acquired, even though two servers are down as well.
func TestTextOfARedLockThatOthersHold(t *testing.T) {
	t.Parallel()
	m := newMasters(t, 5)
	l := latchkey.NewRedLock(latchkey.RedLockOptions{MemberTimeout: time.Second}, m.mutexes(t, "x")...)
	mustUnlock(t, mustLock(t, l))
	m.comesTo(t, "x", 0)
	m.links[0].Cut()
	m.links[1].Silence()
	m.takeAway(4, "x")
	comesToSay(t, `latchkey: try lock "red\(x, x, x, x, x\)": not acquired: 2 of 5 members acquired, 3 needed; `+
		`member 1 "x": `+noServer+`; member 2 "x": `+silent+`; member 5 "x": not acquired.*`, func() error {
		_, err := l.TryLock(t.Context())
		if errors.Is(err, latchkey.ErrNotAcquired) {
			requireBusy(t, err)
			require.NotErrorIs(t, err, latchkey.ErrUnknownOutcome)
		}
		return err
	})
	wait, err := refusedFrom(t, 2500*time.Millisecond, func(wait time.Duration) error {
		_, err := l.Lock(t.Context(), latchkey.Wait(wait))
		return err
	})
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "; the wait of "+wait.String()+" is over")

	m.links[2].Cut() // now only two servers are left
	_, err = l.TryLock(t.Context())
	requireUnavailable(t, err)
	m.links[2].Restore()
	m.comesTo(t, "x", 0, 2, 3)
}

// A MultiLock passes on the error of its member.
func TestTextOfAMultiLock(t *testing.T) {
	t.Parallel()
	m := newMasters(t, 2)
	clients := m.clients(t, latchkey.Options{RetryBudget: 1500 * time.Millisecond})
	l := latchkey.NewMultiLock(clients[0].NewLock("a"), clients[1].NewLock("b"))
	mustUnlock(t, mustLock(t, l))
	rival := mustLock(t, connect(t, m.servers[1]).NewLock("b"))
	comesToSay(t, `latchkey: try lock "multi\(a, b\)": try lock "b": not acquired.*`, func() error {
		_, err := l.TryLock(t.Context())
		return err
	})
	wait, err := refusedFrom(t, 500*time.Millisecond, func(wait time.Duration) error {
		_, err := l.Lock(t.Context(), latchkey.Wait(wait))
		return err
	})
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	matches(t, `latchkey: lock "multi\(a, b\)": lock "b": not acquired.*; the wait of `+wait.String()+` is over(; outcome unknown)?`, err)
	_, err = refusedFrom(t, 500*time.Millisecond, func(wait time.Duration) error {
		_, err := l.Lock(within(t, wait))
		return err
	})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	mustUnlock(t, rival)

	m.links[1].Cut()
	for verb, acquire := range map[string]func() (*latchkey.Hold, error){
		"try lock": func() (*latchkey.Hold, error) { return l.TryLock(t.Context()) },
		"lock":     func() (*latchkey.Hold, error) { return l.Lock(t.Context(), latchkey.Wait(3*time.Second)) },
	} {
		m.comesTo(t, "a", 0, 0) // the previous call gives its member back in the background
		_, err = acquire()
		requireUnavailable(t, err)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		matches(t, `latchkey: `+verb+` "multi\(a, b\)": `+verb+` "b": server unavailable: `+noServer+`.*`, err)
	}
	m.comesTo(t, "a", 0, 0)
}

// A MultiLock waits in turns for members with the same key on two servers. The end of such a turn
// is not reported as the end of the caller's wait or context.
func TestTextOfATiedMultiLock(t *testing.T) {
	t.Parallel()
	m := newMasters(t, 2)
	rival := mustLock(t, connect(t, m.servers[1]).NewMutex("x"))
	l := latchkey.NewMultiLock(m.mutexes(t, "x", latchkey.Options{RetryBudget: 1500 * time.Millisecond})...)
	wait, err := refusedFrom(t, 2*time.Second, func(wait time.Duration) error {
		_, err := l.Lock(t.Context(), latchkey.Wait(wait))
		return err
	})
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "the wait of "+wait.String()+" is over")
	require.Equal(t, 1, strings.Count(err.Error(), "the wait of "))
	mustUnlock(t, rival)
	m.links[1].Cut()
	_, err = l.Lock(t.Context(), latchkey.Wait(2*time.Second))
	requireUnavailable(t, err)
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	require.Regexp(t, "connection refused|there is no connection|server unavailable; the wait of 2s is over", err.Error(),
		"the second while another command dials, the third if the wait ends meanwhile")
	m.comesTo(t, "x", 0, 0)
}
