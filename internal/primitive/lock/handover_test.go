package lock_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/testredis"
)

// handoverScripts drives one lock and its queue by the bare scripts. The lock is a mutex, or a hash
// with a counter of tokens.
type handoverScripts struct {
	*testredis.Clocked

	t     *testing.T
	keys  *keyspace.Keys
	mutex bool
}

const (
	ownerC  = testredis.OwnerC
	ownerE  = "eeeeeeee-5555-4555-8555-555555555555:1"
	ownerA2 = testredis.OwnerA2
)

// handedOver is a lock with its queue and its counter.
type handedOver struct {
	owner string // "" if it is free
	queue []string
	token string // the counter
}

// eachHandover runs a test for a mutex and a fenced lock, on the embedded server and on a real one.
func eachHandover(t *testing.T, test func(t *testing.T, s handoverScripts)) {
	t.Helper()
	t.Run("embedded", func(t *testing.T) {
		eachHandoverOn(t, func(t *testing.T) (*testredis.Clocked, string) { t.Helper(); return testredis.Embedded(t), "" }, test)
	})
	t.Run("server", func(t *testing.T) { eachHandoverOn(t, testredis.Real, test) })
}

// eachHandoverOn runs a test for a mutex and a fenced lock, and starts a server for each.
func eachHandoverOn(t *testing.T, start func(t *testing.T) (*testredis.Clocked, string), test func(t *testing.T, s handoverScripts)) {
	t.Helper()
	for kind, mutex := range map[string]bool{"mutex": true, "fenced": false} {
		t.Run(kind, func(t *testing.T) {
			server, without := start(t)
			if server == nil {
				t.Skip(without)
			}
			test(t, handoverScripts{server, t, keyspace.OfKey("thing", "thing"), mutex})
		})
	}
}

// entry returns the entry of an owner. A grant to it has a lease of 5 s and a token.
func (s handoverScripts) entry(owner string) string {
	if s.mutex {
		return owner + " 5000 0s"
	}
	return owner + " 5000 1"
}

// attempt makes an attempt with an entry to wait with, and an entry that may already be in the
// queue.
func (s handoverScripts) attempt(owner, entry, oldEntry string) any {
	s.t.Helper()
	if s.mutex {
		return s.Run(script.MutexAcquire, s.keys.Queued(), owner, "30000", entry, oldEntry)
	}
	return s.Run(script.LockAcquire, s.keys.Fenced(), owner, "30000", "1", "", "", "1", entry, oldEntry)
}

// wait makes an attempt that is refused and waits.
func (s handoverScripts) wait(owner string) {
	s.t.Helper()
	require.IsType(s.t, []any{}, s.attempt(owner, s.entry(owner), ""))
}

// release releases with the entries of the owner and of the next owner.
func (s handoverScripts) release(owner, own, next string) any {
	s.t.Helper()
	args := []string{own, next, "latchkey:{", "}", "1", "30000"}
	if s.mutex {
		return s.Run(script.MutexRelease, s.keys.Queued(), append([]string{owner, s.keys.Channel, "PUBLISH"}, args...)...)
	}
	return s.Run(script.LockRelease, s.keys.Fenced(), append([]string{owner, s.keys.Channel, "0", "", "0", "PUBLISH"}, args...)...)
}

// state returns what is in Redis.
func (s handoverScripts) state() handedOver {
	s.t.Helper()
	e := s.State(s.keys.Fenced()...)
	h := handedOver{owner: e[0].Text, queue: e[1].List, token: e[2].Text}
	if len(e[0].List) > 0 {
		h.owner = e[0].List[0]
		require.Equal(s.t, "1", e[0].Fields[h.owner])
	}
	require.Equal(s.t, len(h.queue) > 0, e[1].Kind == "zset", "%+v", e[1])
	return h
}

// check checks what is in Redis. The token applies to a fenced lock only.
func (s handoverScripts) check(owner, token string, waiting ...string) {
	s.t.Helper()
	want := handedOver{owner: owner, token: token}
	if s.mutex {
		want.token = ""
	}
	for _, each := range waiting {
		want.queue = append(want.queue, s.entry(each))
	}
	require.Equal(s.t, want, s.state())
}

// granted returns the reply of a release that grants the lock to the next owner of the same client.
func (s handoverScripts) granted(owner, token string) any { return []any{owner, s.tokenOf(token)} }

// acquired returns the reply to a successful attempt.
func (s handoverScripts) acquired(token string) any {
	if s.mutex {
		return nil
	}
	return token
}

func (s handoverScripts) tokenOf(token string) string {
	if s.mutex {
		return "0"
	}
	return token
}

// grantMessage returns the message that reports a grant.
func (s handoverScripts) grantMessage(owner, token string) string {
	kind := "h "
	if s.mutex {
		kind = "s "
	}
	return "grant " + kind + owner + " " + s.tokenOf(token) + " " + s.keys.Key
}

// hear subscribes to the channels of the clients of owners and returns their messages.
func (s handoverScripts) hear(owners ...string) <-chan string {
	s.t.Helper()
	channels := make([]string, len(owners))
	for i, owner := range owners {
		client, _, _ := strings.Cut(owner, ":")
		channels[i] = "latchkey:{" + client + "}"
	}
	return s.hearOn(channels...)
}

func (s handoverScripts) hearOn(channels ...string) <-chan string {
	s.t.Helper()
	return s.Hear(s.t, channels...)
}

// The life of a contended lock: the state in Redis after each step, with every command sent twice.
func TestHandoverScripts_step_by_step(t *testing.T) {
	eachHandover(t, func(t *testing.T, s handoverScripts) {
		heard := s.hear(ownerB, ownerC, ownerE)
		for range 2 {
			require.Equal(t, s.acquired("1"), s.attempt(ownerA, s.entry(ownerA), ""))
			s.check(ownerA, "1")
		}
		for range 2 {
			s.wait(ownerB)
			s.check(ownerA, "1", ownerB)
		}
		s.Set(testredis.Epoch + 1000)
		s.wait(ownerE)
		s.wait(ownerB)
		s.check(ownerA, "1", ownerB, ownerE)
		require.Equal(t, int64(60000), s.Do("PTTL", s.keys.Queue()))

		require.Equal(t, s.granted(ownerB, "2"), s.release(ownerA, "", ""))
		require.Equal(t, s.grantMessage(ownerB, "2"), testredis.Unstamped(<-heard))
		require.Equal(t, int64(5000), s.Do("PTTL", s.keys.Key))
		for range 2 {
			s.check(ownerB, "2", ownerE)
			require.Nil(t, s.release(ownerA, s.entry(ownerA), s.entry(ownerA2)), "late, and with a next owner")
		}
		s.check(ownerB, "2", ownerE)
		for range 2 {
			require.Equal(t, s.acquired("2"), s.attempt(ownerB, s.entry(ownerB), s.entry(ownerB)), "it is confirmed")
			s.check(ownerB, "2", ownerE)
		}
		require.Equal(t, int64(30000), s.Do("PTTL", s.keys.Key))

		require.Equal(t, s.granted(ownerE, "3"), s.release(ownerB, s.entry(ownerB), ""))
		require.Equal(t, s.grantMessage(ownerE, "3"), testredis.Unstamped(<-heard))
		s.check(ownerE, "3")
		require.Equal(t, int64(0), s.release(ownerE, "", ""))
		require.Nil(t, s.release(ownerE, "", ""))
		s.check("", "3")
		require.Empty(t, heard)
	})
}

// A release that wants the lock again gets it in its reply if nobody else waits, and otherwise
// joins the end of the queue. The second copy, or a release that frees nothing, does neither.
func TestHandoverScripts_next_owner(t *testing.T) {
	eachHandover(t, func(t *testing.T, s handoverScripts) {
		s.attempt(ownerA, "", "")
		require.Equal(t, s.granted(ownerA2, "2"), s.release(ownerA, "", s.entry(ownerA2)), "nobody has to hear it")
		require.Equal(t, int64(30000), s.Do("PTTL", s.keys.Key), "the lease that it asked for")
		s.check(ownerA2, "2")
		require.Nil(t, s.release(ownerA, "", s.entry(ownerA2)))
		s.check(ownerA2, "2")

		heard := s.hear(ownerB)
		s.wait(ownerB)
		s.Set(testredis.Epoch + 1000)
		require.Equal(t, s.granted(ownerB, "3"), s.release(ownerA2, "", s.entry(ownerA)))
		require.Equal(t, int64(5000), s.Do("PTTL", s.keys.Key), "the lease of a grant")
		require.Equal(t, s.grantMessage(ownerB, "3"), testredis.Unstamped(<-heard))
		s.check(ownerB, "3", ownerA)
		require.Nil(t, s.release(ownerA2, "", s.entry(ownerA)))
		require.Nil(t, s.release(ownerE, "", s.entry(ownerE)), "it has nothing to free")
		s.check(ownerB, "3", ownerA)
	})
}

// A waiter learns since when it waits, the same time with each refusal. So does its client with the
// grant, which is later than all those refusals. A waiter that has to wait again does so since
// another time.
func TestHandoverScripts_since_when(t *testing.T) {
	eachHandover(t, func(t *testing.T, s handoverScripts) {
		heard := s.hear(ownerB)
		s.attempt(ownerA, "", "")
		number := func(text string) float64 { // the embedded server writes numbers in two forms
			n, err := strconv.ParseFloat(text, 64)
			require.NoError(t, err)
			return n
		}
		since := func() float64 {
			reply := s.attempt(ownerB, s.entry(ownerB), s.entry(ownerB)).([]any)
			require.Len(t, reply, 3)
			return number(reply[2].(string))
		}
		first := since()
		s.Set(testredis.Epoch + 1000)
		require.InDelta(t, first, since(), 0)
		s.release(ownerA, "", "")
		_, told, _ := strings.Cut(strings.Fields(<-heard)[3], "@")
		require.InDelta(t, first, number(told), 0)
		s.Do("DEL", s.keys.Key)
		s.attempt(ownerA, "", "")
		s.Set(testredis.Epoch + 2000)
		second := since()
		require.Greater(t, second, first)
		require.InDelta(t, second, since(), 0)
	})
}

// An owner that takes a free lock leaves the queue, whether its command had an entry to wait with
// or not.
func TestHandoverScripts_taker_leaves_the_queue(t *testing.T) {
	for _, again := range []bool{true, false} {
		eachHandover(t, func(t *testing.T, s handoverScripts) {
			t.Helper()
			entry := ""
			if again {
				entry = s.entry(ownerB)
			}
			s.attempt(ownerA, "", "")
			s.wait(ownerB)
			s.Do("DEL", s.keys.Key)
			require.Equal(t, s.acquired("2"), s.attempt(ownerB, entry, s.entry(ownerB)))
			s.check(ownerB, "2")
		})
	}
}

// A waiter that gives up leaves the queue. If it finds the lock free, the next waiter gets it.
func TestHandoverScripts_way_out(t *testing.T) {
	eachHandover(t, func(t *testing.T, s handoverScripts) {
		heard := s.hear(ownerB, ownerE)
		s.attempt(ownerA, "", "")
		s.wait(ownerB)
		s.Set(testredis.Epoch + 1000)
		s.wait(ownerE)
		for range 2 {
			require.Nil(t, s.release(ownerB, s.entry(ownerB), ""))
			s.check(ownerA, "1", ownerE)
		}
		s.Do("DEL", s.keys.Key)
		require.Nil(t, s.release(ownerB, s.entry(ownerB), ""))
		require.Equal(t, s.grantMessage(ownerE, "2"), testredis.Unstamped(<-heard))
		s.check(ownerE, "2")
	})
}

// A grant passes over an owner whose client does not listen, an entry that was already used, and
// text that is no entry.
func TestHandoverScripts_passed_over(t *testing.T) {
	eachHandover(t, func(t *testing.T, s handoverScripts) {
		heard := s.hear(ownerA, ownerB)
		s.attempt(ownerA, "", "")
		for i, entry := range []string{s.entry(ownerE), s.entry(ownerA), "nonsense", s.entry(ownerB)} {
			s.Do("ZADD", s.keys.Queue(), strconv.Itoa(i), entry)
		}
		require.Equal(t, s.granted(ownerB, "2"), s.release(ownerA, "", ""), "the dead get no tokens")
		require.Equal(t, s.grantMessage(ownerB, "2"), testredis.Unstamped(<-heard))
		s.check(ownerB, "2")
		require.Empty(t, heard)
	})
}

// One call passes over 64 waiters that do not listen. The lock is then free, and the next call goes
// on with the 65th.
func TestHandoverScripts_many_dead(t *testing.T) {
	for _, dead := range []int{64, 100} {
		eachHandover(t, func(t *testing.T, s handoverScripts) {
			heard := s.hear(ownerB)
			s.attempt(ownerA, "", "")
			for i := range dead {
				s.Do("ZADD", s.keys.Queue(), strconv.Itoa(i), s.entry(ownerE+strconv.Itoa(i)))
			}
			s.Do("ZADD", s.keys.Queue(), strconv.Itoa(dead), s.entry(ownerB))
			require.Equal(t, int64(0), s.release(ownerA, "", ""))
			require.Empty(t, s.state().owner)
			require.Contains(t, s.state().queue, s.entry(ownerB))
			require.Nil(t, s.release(ownerA, "", ""))
			require.Contains(t, <-heard, ownerB)
			require.Equal(t, ownerB, s.state().owner)
		})
	}
}

// A release of one kind of lock never grants it to a waiter of the other kind, whose entries have
// another format.
func TestHandoverScripts_kinds_do_not_mix(t *testing.T) {
	eachHandover(t, func(t *testing.T, s handoverScripts) {
		heard := s.hear(ownerB, ownerC, ownerE)
		s.attempt(ownerA, "", "")
		other := handoverScripts{s.Clocked, t, s.keys, !s.mutex}
		s.Do("ZADD", s.keys.Queue(), "1", other.entry(ownerB), "2", s.entry(ownerC), "3", other.entry(ownerE))
		require.Equal(t, s.granted(ownerC, "2"), s.release(ownerA, "", ""))
		require.Equal(t, s.grantMessage(ownerC, "2"), testredis.Unstamped(<-heard))
		require.Equal(t, int64(0), s.release(ownerC, "", ""), "free, and not the other kind's")
		s.check("", "2")
		require.Empty(t, heard)
	})
}

// If strangers listen and it is their turn, the lock becomes free, and the first waiter that
// listens gets a message to try. A waiter that does not listen leaves the queue instead.
func TestHandoverScripts_strangers(t *testing.T) {
	eachHandover(t, func(t *testing.T, s handoverScripts) {
		strangers, heard := s.hearOn(s.keys.Channel), s.hear(ownerB)
		s.attempt(ownerA, "", "")
		s.wait(ownerB)
		since := s.Do("ZSCORE", s.keys.Queue(), s.entry(ownerB))
		require.Equal(t, int64(1), s.release(ownerA, "", ""))
		require.Equal(t, since, s.Do("ZSCORE", s.keys.Queue(), s.entry(ownerB)), "it keeps its place")
		require.Greater(t, s.Do("PTTL", s.keys.Queue()), int64(50000), "an abandoned queue goes away")
		require.Equal(t, "2", <-strangers)
		require.Equal(t, "0", <-strangers)
		require.Equal(t, "ask 2 "+ownerB+" "+s.keys.Key, testredis.Unstamped(<-heard))
		s.check("", "1", ownerB)

		s.attempt(ownerB, "", s.entry(ownerB))
		s.wait(ownerE)
		require.Equal(t, int64(1), s.release(ownerB, "", ""))
		require.Equal(t, "2", <-strangers)
		require.Equal(t, "0", <-strangers)
		s.check("", "2")
	})
}

// A mutex that is left to pollers is free, and the first of the queue learns when to try. If
// several wait, only some releases leave it free. The second copy of the release grants the mutex
// to the first of the queue.
func TestHandoverScripts_left_free(t *testing.T) {
	eachHandover(t, func(t *testing.T, s handoverScripts) {
		if !s.mutex {
			return
		}
		release := func(owner, next string) any {
			return s.Run(script.MutexRelease, s.keys.Queued(), owner, s.keys.Channel, "PUBLISH", "", next, "latchkey:{", "}", "1", "30000", "20")
		}
		heard := s.hear(ownerB)
		require.Nil(t, release(ownerA, s.entry(ownerA2)), "nothing to free")
		s.check("", "")
		s.attempt(ownerA, "", "")
		s.wait(ownerB)
		s.Set(testredis.Epoch + 1000)
		require.Equal(t, int64(0), release(ownerA, s.entry(ownerA2)))
		require.Equal(t, "ask 20 "+ownerB+" "+s.keys.Key, testredis.Unstamped(<-heard))
		s.check("", "", ownerB, ownerA2)
		require.Nil(t, release(ownerA, s.entry(ownerA2)))
		require.Equal(t, s.grantMessage(ownerB, ""), testredis.Unstamped(<-heard))
		s.check(ownerB, "", ownerA2)

		s.wait(ownerE)
		s.Set(testredis.Epoch + 1001)
		require.Equal(t, []any{ownerA2, "0"}, release(ownerB, s.entry(ownerA2)), "not this time")
		s.check(ownerA2, "", ownerE)
	})
}

// On an empty server, only an attempt creates keys.
func TestHandoverScripts_on_an_empty_server(t *testing.T) {
	eachHandover(t, func(t *testing.T, s handoverScripts) {
		for range 2 {
			require.Nil(t, s.release(ownerA, s.entry(ownerA), s.entry(ownerA2)))
			require.Empty(t, s.Do("KEYS", "*"))
		}
		require.Equal(t, s.acquired("1"), s.attempt(ownerB, s.entry(ownerB), s.entry(ownerB)))
		s.check(ownerB, "1")
	})
}

// A server that is out of memory accepts no new waiter, but still grants the lock to those that
// wait.
func TestHandoverScripts_out_of_memory(t *testing.T) {
	eachHandoverOn(t, testredis.Real, func(t *testing.T, s handoverScripts) { // the embedded server has no limit
		heard := s.hear(ownerB)
		s.attempt(ownerA, "", "")
		s.wait(ownerB)
		s.Full(true)
		require.True(t, testredis.HasCode(s.attempt(ownerE, s.entry(ownerE), ""), "OOM"))
		require.IsType(t, []any{}, s.attempt(ownerE, "", ""), "who does not wait is told who holds it")
		s.check(ownerA, "1", ownerB)
		s.Set(testredis.Epoch + 1000)
		require.Equal(t, s.granted(ownerB, "2"), s.release(ownerA, s.entry(ownerA), s.entry(ownerA2)))
		require.Equal(t, s.grantMessage(ownerB, "2"), testredis.Unstamped(<-heard))
		s.check(ownerB, "2", ownerA2)
		s.Do("DEL", s.keys.Key)
		require.Nil(t, s.release(ownerB, s.entry(ownerB), ""), "nor does this")
	})
}

// The same is true for an owner that has no place in the queue, and whose client wants the lock
// again.
func TestHandoverScripts_out_of_memory_with_a_next_owner(t *testing.T) {
	eachHandoverOn(t, testredis.Real, func(t *testing.T, s handoverScripts) {
		heard := s.hear(ownerB)
		s.attempt(ownerA, "", "")
		s.wait(ownerB)
		s.Set(testredis.Epoch + 1000)
		s.Full(true)
		require.Equal(t, s.granted(ownerB, "2"), s.release(ownerA, "", s.entry(ownerA2)))
		require.Equal(t, s.grantMessage(ownerB, "2"), testredis.Unstamped(<-heard))
		s.check(ownerB, "2", ownerA2)
	})
}

// A lock that cannot be handed over, because the keys next to it belong to somebody else, becomes
// free.
func TestHandoverScripts_keys_of_others(t *testing.T) {
	eachHandover(t, func(t *testing.T, s handoverScripts) {
		s.attempt(ownerA, "", "")
		s.Do("SET", s.keys.Queue(), "somebody's")
		require.Equal(t, int64(0), s.release(ownerA, s.entry(ownerA), s.entry(ownerA2)))
		require.Nil(t, s.release(ownerA, s.entry(ownerA), s.entry(ownerA2)))
		require.Nil(t, s.Do("GET", s.keys.Key))
		require.Equal(t, "somebody's", s.Do("GET", s.keys.Queue()))
		if s.mutex {
			return
		}
		s.hear(ownerB)
		s.Do("DEL", s.keys.Queue())
		s.attempt(ownerA, "", "")
		s.wait(ownerB)
		s.Do("DEL", s.keys.Token())
		s.Do("LPUSH", s.keys.Token(), "somebody's")
		require.Equal(t, int64(0), s.release(ownerA, "", ""))
		require.Nil(t, s.Do("GET", s.keys.Key))
	})
}

// Tokens that follow the clock also do so when a grant issues them, even if the counter was lost.
func TestHandoverScripts_tokens_follow_the_clock(t *testing.T) {
	eachHandover(t, func(t *testing.T, s handoverScripts) {
		if s.mutex {
			return
		}
		s.hear(ownerB)
		now := strconv.FormatInt(testredis.Epoch/1000, 10)
		require.Equal(t, now, s.Run(script.LockAcquire, s.keys.Fenced(), ownerA, "30000", "1", "", "1", "1", "", ""))
		require.IsType(t, []any{}, s.Run(script.LockAcquire, s.keys.Fenced(), ownerB, "30000", "1", "", "1", "1", ownerB+" 5000 1t", ""))
		s.Do("DEL", s.keys.Token())
		s.Set(testredis.Epoch + 2_000_000)
		later := strconv.FormatInt(testredis.Epoch/1000+2000, 10)
		require.Equal(t, []any{ownerB, later}, s.release(ownerA, "", ""))
		require.Equal(t, later, s.state().token)
		require.Equal(t, later, s.Run(script.LockAcquire, s.keys.Fenced(), ownerB, "30000", "1", "", "1", "1", "", ""), "the same if it is confirmed")
	})
}

// If listeners cannot be counted, the first waiter gets the grant whether its client listens or
// not.
func TestHandoverScripts_without_a_count(t *testing.T) {
	eachHandover(t, func(_ *testing.T, s handoverScripts) {
		s.attempt(ownerA, "", "")
		s.wait(ownerB)
		args := []string{"", "", "latchkey:{", "}", "0", "0"}
		if s.mutex {
			s.Run(script.MutexRelease, s.keys.Queued(), slices.Concat([]string{ownerA, s.keys.Channel, "PUBLISH"}, args)...)
		} else {
			s.Run(script.LockRelease, s.keys.Fenced(), slices.Concat([]string{ownerA, s.keys.Channel, "0", "", "0", "PUBLISH"}, args)...)
		}
		s.check(ownerB, "2")
	})
}
