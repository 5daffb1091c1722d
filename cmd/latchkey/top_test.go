package main

import (
	"strings"
	"testing"
	"time"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/uniseg"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/latchkeytest"
)

// seen returns a lock with these holders and this remaining lease.
func seen(name string, ttl time.Duration, owners ...latchkey.Owner) latchkey.Object {
	o := latchkey.Object{Inspection: latchkey.Inspection{Name: name, Key: name, Kind: latchkey.KindLock, TTL: ttl}, HolderCount: len(owners)}
	for _, owner := range owners {
		o.Holders = append(o.Holders, latchkey.Holder{Owner: owner, Count: 1})
	}
	return o
}

// A new holder counts as acquired. A holder that is gone counts as lost only if its lease may have expired since the
// last look: otherwise it has released.
func TestTopRates(t *testing.T) {
	t.Parallel()
	client := latchkeytest.NewServer(t).Client()
	a, b := client.NewOwner(), client.NewOwner()
	at := time.Now()
	l := newTopList()
	look := func(found ...latchkey.Object) {
		at = at.Add(2 * time.Second)
		l.apply(topLook{began: at, found: found})
	}
	look(seen("x", 30*time.Second, a))
	first := at
	assert.Zero(t, l.acquired, "the first look compares with none")

	look(seen("x", 28*time.Second, a))
	assert.Equal(t, first, l.rows["x"].since)
	assert.Zero(t, l.acquired)

	look(seen("x", time.Second, b), seen("y", time.Minute, a))
	assert.Equal(t, at, l.rows["x"].since)
	assert.InDelta(t, 0.5, l.rows["x"].acquired, 0.001)
	assert.Zero(t, l.rows["x"].lost, "its lease was long: it was released")
	assert.InDelta(t, 1, l.acquired, 0.001)

	look()
	assert.InDelta(t, 0.5, l.lost, 0.001, "x may have run out, y was released")
	assert.Empty(t, l.shown)

	pool := latchkey.Object{Inspection: latchkey.Inspection{Name: "p", Kind: latchkey.KindSemaphore, TTL: latchkey.NoExpiry}, HolderCount: 1}
	look(pool)
	pool.HolderCount = 4
	look(pool)
	assert.InDelta(t, 1.5, l.rows["p"].acquired, 0.001)
}

// An owner that has released a lock that is kept does not hold it: it counts neither as acquired nor as lost.
func TestTopOfALockThatIsKept(t *testing.T) {
	t.Parallel()
	owner := latchkeytest.NewServer(t).Client().NewOwner()
	held := seen("x", time.Second, owner)
	kept := seen("x", time.Second, owner)
	kept.Holders[0].Kept = true
	for _, looks := range [][2]latchkey.Object{{held, kept}, {kept, kept}, {kept, {}}, {{}, kept}} {
		came, ran := changes(looks[0], looks[1], 2*time.Second)
		assert.Zero(t, came)
		assert.Zero(t, ran)
	}
	came, ran := changes(kept, held, 2*time.Second)
	assert.Equal(t, []int{1, 0}, []int{came, ran}, "the same owner anew")
	assert.False(t, sameHolders(held, kept), "it is held no longer")
	assert.Equal(t, "released, kept: "+owner.String(), heldBy(kept))
	held.Holders[0].Label = "web-1"
	assert.Equal(t, "Take x from web-1? It may be working. y: yes, other keys: no", forceQuestion(held, 80))
	assert.Equal(t, "Free x? Nobody holds it; it is kept for 1.0s. y: yes, other keys: no", forceQuestion(kept, 80))
}

// Each look at a lock with many holders shows a different sample of them: only their number shows a change.
func TestTopOfASample(t *testing.T) {
	t.Parallel()
	client := latchkeytest.NewServer(t).Client()
	sample := func(n int) latchkey.Object {
		o := seen("x", time.Second, client.NewOwner(), client.NewOwner())
		o.HolderCount = n
		return o
	}
	assert.True(t, sameHolders(sample(100), sample(100)))
	assert.False(t, sameHolders(sample(100), sample(101)))
	assert.Equal(t, "held by 100 owners; waiters: 0", changeText(sample(100)))
	came, ran := changes(sample(100), sample(103), 2*time.Second)
	assert.Equal(t, []int{3, 0}, []int{came, ran})
	came, ran = changes(sample(103), sample(100), 2*time.Second)
	assert.Equal(t, []int{0, 3}, []int{came, ran})
	came, ran = changes(sample(103), sample(2), time.Millisecond)
	assert.Equal(t, []int{0, 0}, []int{came, ran}, "their leases were longer")
}

// The rows are sorted by the numbers in the column, whatever they count.
func TestTopSortsByWhatItShows(t *testing.T) {
	l := newTopList()
	barrier := latchkey.Object{Inspection: latchkey.Inspection{Name: "barrier", Kind: latchkey.KindBarrier}, Queued: 3, Total: 5}
	latch := latchkey.Object{Inspection: latchkey.Inspection{Name: "latch", Kind: latchkey.KindLatch}, Count: 7}
	pool := latchkey.Object{Inspection: latchkey.Inspection{Name: "pool", Kind: latchkey.KindSemaphore}, HolderCount: 4, Total: 9}
	number := latchkey.Object{Inspection: latchkey.Inspection{Name: "number", Kind: latchkey.KindNumber}, Count: 99}
	l.apply(topLook{began: time.Now(), found: []latchkey.Object{barrier, latch, pool, number, seen("x", time.Second)}})
	l.sortBy(byHolders)
	var shown []string
	for _, row := range l.shown {
		shown = append(shown, row.Name+" "+holdersText(row.Object))
	}
	assert.Equal(t, []string{"latch 7", "pool 4/9", "barrier 3/5", "number ?", "x 0"}, shown)
}

func TestTopSortsAndFilters(t *testing.T) {
	t.Parallel()
	client := latchkeytest.NewServer(t).Client()
	l := newTopList()
	a, b := seen("a", 3*time.Second, client.NewOwner()), seen("b", 2*time.Second, client.NewOwner(), client.NewOwner())
	a.Queued = 5
	l.apply(topLook{began: time.Now(), found: []latchkey.Object{a, b, seen("ab", time.Second)}})
	names := func() (all []string) {
		for _, row := range l.shown {
			all = append(all, row.Name)
		}
		return all
	}
	assert.Equal(t, []string{"a", "ab", "b"}, names(), "by waiters, then by name")
	l.sortBy(byHolders)
	assert.Equal(t, []string{"b", "a", "ab"}, names())
	l.sortBy(byHolders)
	assert.Equal(t, []string{"ab", "a", "b"}, names())
	l.sortBy(byTTL)
	assert.Equal(t, []string{"a", "b", "ab"}, names())
	l.filter = "b"
	l.arrange()
	assert.Equal(t, []string{"b", "ab"}, names())
}

// Each line has the width of the screen, for all screens and names.
func TestTopFitsTheScreen(t *testing.T) {
	t.Parallel()
	client := latchkeytest.NewServer(t).Client()
	for _, size := range [][2]int{{80, 24}, {120, 40}, {40, 10}, {10, 3}, {1, 1}} {
		screen := tcell.NewSimulationScreen("UTF-8")
		require.NoError(t, screen.Init())
		screen.SetSize(size[0], size[1])
		v := &topView{screen: screen, list: newTopList(), pattern: "*", every: time.Second}
		v.list.apply(topLook{began: time.Now(), found: []latchkey.Object{
			seen("äöü€😀 very long name that does not fit into any column of any terminal in the world", time.Hour, client.NewOwner()),
			seen("a\x1b[2Jb", latchkey.NoExpiry),
		}})
		v.draw()
		v.details = &topDetails{name: "a\nb", object: seen("a\nb", time.Second, client.NewOwner()), loaded: true}
		v.draw()
		v.helping = true
		v.draw()
		screen.Fini()
		name, owner := topWidths(size[0])
		for _, row := range v.list.shown {
			if size[0] >= 80 {
				assert.LessOrEqual(t, uniseg.StringWidth(rowText(row, time.Now(), name, owner)), size[0])
			}
			assert.NotContains(t, rowText(row, time.Now(), name, owner), "\x1b", "no name moves the cursor")
		}
	}
}

func TestTopNeedsATerminal(t *testing.T) {
	t.Parallel()
	got := latchkeyCLI(t, latchkeytest.NewServer(t), "top")
	assert.Equal(t, exitUsage, got.code)
	assert.Contains(t, got.stderr, "latchkey ls")
}

// The line of a question always shows the keys that answer it, however long the names are.
func TestTopQuestionsFit(t *testing.T) {
	t.Parallel()
	client := latchkeytest.NewServer(t).Client()
	one := seen("orders:"+strings.Repeat("4", 60), time.Minute, client.NewOwner())
	many := seen("orders:42", time.Minute, client.NewOwner(), client.NewOwner(), client.NewOwner())
	kept := seen(one.Name, time.Minute, client.NewOwner())
	kept.Holders[0].Kept = true
	for _, width := range []int{60, 80} {
		for about, o := range map[string]latchkey.Object{"Take orders": one, "Take order": many, "Free orders": kept} {
			text := forceQuestion(o, width)
			assert.LessOrEqual(t, uniseg.StringWidth(text), width, text)
			assert.Regexp(t, "^"+about+".* y: yes, other keys: no$", text)
		}
	}
	assert.Contains(t, forceQuestion(one, 80), " It may be working.")
	assert.Contains(t, forceQuestion(many, 60), " and 2 more?")
}

// With a filter, the last line still shows the keys that work.
func TestTopFootWithAFilter(t *testing.T) {
	v := &topView{list: newTopList()}
	v.list.filter = strings.Repeat("orders", 20)
	foot := v.foot(60)
	assert.LessOrEqual(t, uniseg.StringWidth(foot), 60)
	for _, hint := range []string{"filter: orders", "/ change", "enter details", "f force", "q quit"} {
		assert.Contains(t, foot, hint)
	}
}
