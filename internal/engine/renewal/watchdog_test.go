package renewal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/base/async"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport"
	"github.com/latchkey-go/latchkey/internal/transport/nodes"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// fakeLease is the lease of the holds in these tests, which are renewed after a third of it.
const fakeLease = 30 * time.Second

// fakeWorld is a watchdog with its holds, in fake time. It records what happens to each.
type fakeWorld struct {
	watchdog *Watchdog
	began    time.Time
	answer   func(keys []string) ([]int64, error) // of the server; nil renews everything

	mu     sync.Mutex
	slept  time.Duration // the monotonic clock stood still for this time
	events map[string][]string
}

// inWorld runs a test in a bubble. The watchdog must leave no goroutine behind.
func inWorld(t *testing.T, test func(t *testing.T, w *fakeWorld)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &fakeWorld{began: time.Now(), events: map[string][]string{}}
		w.watchdog = New(Config{
			Clock: w.clock, Topology: nodes.NewTopology(false, 1), PollCeiling: 4 * time.Second,
			Send: w.send, Failed: func(string, int, error) {},
		})
		defer w.watchdog.Close()
		test(t, w)
	})
}

func (w *fakeWorld) clock() lease.Stamp {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Since(w.began)
	return lease.Stamp{Mono: now, Wall: now + w.slept}
}

// sleep is a sleep of the machine.
func (w *fakeWorld) sleep(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.slept += d
}

// until lets time pass until then.
func (w *fakeWorld) until(then time.Duration) {
	time.Sleep(then - time.Since(w.began))
	synctest.Wait()
}

func (w *fakeWorld) send(c script.Call, patience time.Duration) ([]int64, error) {
	for _, key := range c.Keys {
		w.note(key, "sent")
	}
	if w.answer == nil {
		return renewsAll(c.Keys)
	}
	results, err := w.answer(c.Keys)
	if results == nil && err == nil {
		time.Sleep(patience)
		return nil, outcome.ErrSilent
	}
	return results, err
}

// renewsAll is the answer of a server that has all the holds.
func renewsAll(keys []string) ([]int64, error) { return slices.Repeat([]int64{1}, len(keys)), nil }

// isSilent is no answer.
func isSilent([]string) ([]int64, error) { return nil, nil }

func (w *fakeWorld) note(key, event string) {
	at := w.clock().Mono.Round(time.Millisecond)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events[key] = append(w.events[key], fmt.Sprint(at, " ", event))
}

// seen returns what has happened to a hold.
func (w *fakeWorld) seen(key string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.events[key], ", ")
}

// add makes a hold that has just been acquired.
func (w *fakeWorld) add(key string) *fakeHold {
	h := w.made(key)
	h.begin()
	return h
}

// made makes a hold that the watchdog does not know yet.
func (w *fakeWorld) made(key string) *fakeHold {
	h := &fakeHold{Item: NewItem(), world: w, keys: keyspace.Keys{Name: key, Key: key}, cmd: script.Renew, most: 10, renews: true}
	return h
}

// fakeHold is a hold that plans as an ownership does, without random parts.
type fakeHold struct {
	Item

	world   *fakeWorld
	keys    keyspace.Keys
	cmd     transport.Command
	most    int
	sendMu  async.FIFOMutex
	renews  bool // else it is only verified
	awaited bool
	apart   []string // its keys, each of which can be renewed by itself

	mu   sync.Mutex
	sent lease.Stamp // the last renewal
	over bool
}

func (h *fakeHold) Keys() *keyspace.Keys            { return &h.keys }
func (h *fakeHold) Batch() (transport.Command, int) { return h.cmd, h.most }
func (h *fakeHold) SendMutex() *async.FIFOMutex     { return &h.sendMu }
func (h *fakeHold) Period() time.Duration           { return fakeLease / 3 }
func (h *fakeHold) Awaited() bool                   { return h.awaited }

func (h *fakeHold) NextLease() time.Duration                    { return fakeLease }
func (h *fakeHold) RenewalPatience(time.Duration) time.Duration { return fakeLease / 6 }

func (h *fakeHold) RenewalCall(time.Duration) script.Call {
	return script.NewCall(h.cmd, []string{h.keys.Key})
}

func (h *fakeHold) RenewalCalls(time.Duration) (calls []script.Call) {
	for _, key := range h.apart {
		calls = append(calls, script.NewCall(h.cmd, []string{key}))
	}
	return calls
}

// begin plans the first renewal.
func (h *fakeHold) begin() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sent = h.world.clock()
	h.plan(fakeLease / 3)
}

func (h *fakeHold) Renewed(sent lease.Stamp, _ time.Duration, _ int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sent = sent
	h.world.note(h.keys.Key, "renewed")
	h.plan(fakeLease / 3)
}

func (h *fakeHold) RenewLater(err error) {
	what := "postponed"
	if err != nil {
		what = err.Error()
	}
	h.world.note(h.keys.Key, what)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.plan(time.Second)
}

func (h *fakeHold) Gone() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.end("gone")
}

func (h *fakeHold) EndIfOver() {
	h.mu.Lock()
	defer h.mu.Unlock()
	since := h.world.clock().Since(h.sent)
	if since >= fakeLease {
		h.end("over")
		return
	}
	h.plan(max(fakeLease/3-since, 0))
}

// end ends the hold. h.mu is held.
func (h *fakeHold) end(why string) {
	h.over = true
	h.world.note(h.keys.Key, why)
	h.world.watchdog.Drop(h)
}

// plan plans a renewal after that time. h.mu is held.
func (h *fakeHold) plan(renewal time.Duration) {
	if h.over {
		return
	}
	now, w := h.world.clock(), h.world.watchdog
	due := Due{now.Mono + renewal, now.Mono + fakeLease - now.Since(h.sent), w.VerifyAt(now.Mono)}
	if !h.renews {
		due.RenewAt = async.NoDeadline
	}
	w.Plan(h, due)
}

// Holds are renewed when they are due, and with others that are due soon.
func TestWatchdog_renews_what_is_due(t *testing.T) {
	inWorld(t, func(t *testing.T, w *fakeWorld) {
		w.add("a")
		w.until(4 * time.Second)
		w.add("b")
		w.until(6 * time.Second)
		w.add("c")
		dropped := w.add("dropped")
		w.until(7 * time.Second)
		w.watchdog.Drop(dropped)
		w.until(20 * time.Second)
		require.Equal(t, "10s sent, 10s renewed, 16s sent, 16s renewed", w.seen("a"))
		require.Equal(t, "10s sent, 10s renewed, 16s sent, 16s renewed", w.seen("b"))
		require.Equal(t, "16s sent, 16s renewed", w.seen("c"))
		require.Empty(t, w.seen("dropped"))
		require.Len(t, w.watchdog.planned, 3)
	})
}

// A hold whose renewals are not answered ends at its deadline. Until then they are repeated, and
// none waits for longer than renewPatience.
func TestWatchdog_ends_what_it_cannot_renew(t *testing.T) {
	inWorld(t, func(t *testing.T, w *fakeWorld) {
		w.answer = isSilent
		w.add("a")
		w.until(time.Minute)
		seen, silent := strings.Split(w.seen("a"), ", "), outcome.ErrSilent.Error()
		require.Equal(t, []string{"10s sent", "12s " + silent, "13s sent", "15s " + silent}, seen[:4])
		require.Contains(t, seen, "30s over")
		require.Empty(t, w.watchdog.planned)
	})
}

// A server says of each hold in a script whether it has renewed it.
func TestWatchdog_reads_the_result_of_each_hold(t *testing.T) {
	inWorld(t, func(t *testing.T, w *fakeWorld) {
		w.answer = func(keys []string) ([]int64, error) {
			results, _ := renewsAll(keys)
			for i, key := range keys {
				results[i] = map[string]int64{"there": 1, "gone": 0, "unsure": -1}[key]
			}
			return results, nil
		}
		for _, key := range []string{"there", "gone", "unsure"} {
			w.add(key)
		}
		w.until(10 * time.Second)
		require.Equal(t, "10s sent, 10s renewed", w.seen("there"))
		require.Equal(t, "10s sent, 10s gone", w.seen("gone"))
		require.Equal(t, "10s sent, 10s "+errNotRenewed.Error(), w.seen("unsure"))
	})
}

// One script renews holds of one kind and one slot, and not too many of them.
func TestWatchdog_batches(t *testing.T) {
	inWorld(t, func(t *testing.T, w *fakeWorld) {
		w.watchdog.config.Topology = nodes.NewTopology(true, 1)
		var all []Hold
		add := func(key string, cmd transport.Command, most int) {
			h := w.made(key)
			h.cmd, h.most = cmd, most
			all = append(all, h)
		}
		for i := range 5 {
			add(fmt.Sprint("{x}", i), script.Renew, 2)
		}
		add("{x}permit", script.PermitRenew, 2)
		add("{y}", script.Renew, 2)
		var batches []string
		for _, batch := range w.watchdog.batches(all) {
			keys := ""
			for _, i := range batch {
				keys += i.Keys().Key
			}
			batches = append(batches, keys)
		}
		require.ElementsMatch(t, []string{"{x}0{x}1", "{x}2{x}3", "{x}4", "{x}permit", "{y}"}, batches)
	})
}

// A batch that the server refuses is divided until what it refuses is alone.
func TestWatchdog_divides_refused_batches(t *testing.T) {
	inWorld(t, func(t *testing.T, w *fakeWorld) {
		refusal := outcome.Refusal(errors.New("NOPERM"))
		w.answer = func(keys []string) ([]int64, error) {
			if slices.Contains(keys, "5") {
				return nil, refusal
			}
			return renewsAll(keys)
		}
		var all []Hold
		for i := range 8 {
			all = append(all, w.made(strconv.Itoa(i)))
		}
		w.watchdog.renewAll(w.route(), all)
		synctest.Wait()
		require.Equal(t, "0s sent, 0s sent, 0s renewed", w.seen("0"), "with all, and with its half")
		require.Equal(t, "0s sent, 0s sent, 0s sent, 0s renewed", w.seen("7"))
		require.Equal(t, "0s sent, 0s sent, 0s sent, 0s sent, 0s renewed", w.seen("4"))
		require.Equal(t, "0s sent, 0s sent, 0s sent, 0s sent, 0s "+refusal.Error(), w.seen("5"))
	})
}

// While the keys of a hold are on two nodes, each is renewed by itself.
func TestWatchdog_renews_key_by_key(t *testing.T) {
	refusal := replied(t, "TRYAGAIN Multiple keys request during rehashing of slot")
	for what, test := range map[string]struct {
		apart []string
		want  string
	}{
		"one key":             {nil, refusal.Error()},
		"two keys":            {[]string{"1", "2"}, "renewed"},
		"one of them is gone": {[]string{"1", "lost"}, "gone"},
	} {
		t.Run(what, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *fakeWorld) {
				w.answer = func(keys []string) ([]int64, error) {
					switch keys[0] {
					case "all":
						return nil, refusal
					case "lost":
						return []int64{0}, nil
					}
					return []int64{1}, nil
				}
				h := w.made("all")
				h.apart = test.apart
				w.watchdog.renewAll(w.route(), []Hold{h})
				synctest.Wait()
				require.Equal(t, "0s sent, 0s "+test.want, w.seen("all"))
				for _, key := range test.apart {
					require.Equal(t, "0s sent", w.seen(key))
				}
			})
		})
	}
}

// A renewal waits in line for other commands of its hold, for no longer than a period. Other holds
// do not wait for that.
func TestWatchdog_waits_for_a_busy_hold(t *testing.T) {
	inWorld(t, func(t *testing.T, w *fakeWorld) {
		w.add("free")
		short, long := w.add("short"), w.add("long")
		w.until(9 * time.Second)
		require.True(t, short.sendMu.TryLock())
		require.True(t, long.sendMu.TryLock())
		w.until(12 * time.Second)
		short.sendMu.Unlock()
		w.until(19 * time.Second)
		require.Equal(t, "10s sent, 10s renewed", w.seen("free"))
		require.Equal(t, "12s sent, 12s renewed", w.seen("short"))
		require.Empty(t, w.seen("long"))
		w.until(20 * time.Second)
		require.Equal(t, "20s postponed", w.seen("long"))
		long.sendMu.Unlock()
		w.until(21 * time.Second)
		require.Regexp(t, "^20s postponed, .* renewed$", w.seen("long"))
	})
}

// A hold that nobody renews is verified if goroutines wait behind it and there was no news of it
// for a while.
func TestWatchdog_verifies_what_is_waited_for(t *testing.T) {
	inWorld(t, func(t *testing.T, w *fakeWorld) {
		awaited, other := w.made("awaited"), w.made("other")
		awaited.awaited = true
		for _, h := range []*fakeHold{awaited, other} {
			h.renews = false
			h.begin()
		}
		w.until(10 * time.Second)
		seen := strings.Count(w.seen("awaited"), "sent")
		require.GreaterOrEqual(t, seen, 2, "within a poll ceiling")
		require.LessOrEqual(t, seen, 3)
		require.Empty(t, w.seen("other"))
		w.until(time.Minute)
		require.Contains(t, w.seen("other"), "30s over")
	})
}

// After the machine has slept, every hold is looked at soon, whenever it is due. What is nearly
// over is renewed at once.
func TestWatchdog_notices_that_the_machine_has_slept(t *testing.T) {
	for slept, want := range map[time.Duration]string{
		time.Second:      "9s sent, 9s renewed",
		27 * time.Second: "2s sent, 2s renewed",
		29 * time.Second: "2s over",
	} {
		t.Run(slept.String(), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *fakeWorld) {
				w.add("a")
				w.until(1900 * time.Millisecond)
				w.sleep(slept)
				w.until(10 * time.Second)
				require.Equal(t, want, w.seen("a"))
			})
		})
	}
}

// Nothing is planned after the watchdog is closed.
func TestWatchdog_closed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *fakeWorld) {
		w.add("a")
		w.watchdog.Close()
		w.add("b")
		w.until(time.Minute)
		require.Empty(t, w.seen("a"))
		require.Len(t, w.watchdog.planned, 1)
	})
}

// route returns the backlog of the only node.
func (w *fakeWorld) route() *route {
	return nodes.BacklogOf[Hold](w.watchdog.config.Topology.Serving(0), w.watchdog, 2, 1)
}

// replied returns an error reply of a server. rueidis makes such errors only of what it has stored
// or received.
func replied(t *testing.T, text string) error {
	t.Helper()
	stored := append(make([]byte, 7), '-') // no expiry, an error
	stored = append(binary.BigEndian.AppendUint64(stored, uint64(len(text))), text...)
	var message rueidis.RedisMessage
	require.NoError(t, message.CacheUnmarshalView(stored))
	return message.Error()
}
