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
	o := latchkey.Object{Name: name, Key: name, Kind: latchkey.KindLock, TTL: ttl, HolderCount: len(owners)}
	for _, owner := range owners {
		o.Holders = append(o.Holders, latchkey.Holder{Owner: owner, Count: 1})
	}
	return o
}

// HELD counts from the first look that saw the same holders.
func TestTopSeesHolders(t *testing.T) {
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
	look(seen("x", 28*time.Second, a))
	assert.Equal(t, first, l.rows["x"].since)
	look(seen("x", time.Second, b), seen("y", time.Minute, a))
	assert.Equal(t, at, l.rows["x"].since)
	look()
	assert.Empty(t, l.shown)

	pool := latchkey.Object{Name: "p", Kind: latchkey.KindSemaphore, TTL: latchkey.NoExpiry, HolderCount: 1}
	look(pool)
	pool.HolderCount = 4
	look(pool)
	assert.Equal(t, at, l.rows["p"].since)
}

// An owner that has released a lock that is kept does not hold it.
func TestTopOfALockThatIsKept(t *testing.T) {
	t.Parallel()
	owner := latchkeytest.NewServer(t).Client().NewOwner()
	held := seen("x", time.Second, owner)
	kept := seen("x", time.Second, owner)
	kept.Holders[0].Kept = true
	assert.False(t, sameHolders(held, kept), "it is held no longer")
	assert.False(t, sameHolders(kept, held), "the same owner anew")
	assert.True(t, sameHolders(kept, kept))
	assert.Equal(t, "released, kept: "+owner.String(), heldBy(kept))
	held.Holders[0].Label = "web-1"
	assert.Equal(t, "Take x from web-1? It may be working. y: yes, other keys: no", forceQuestion(held))
	assert.Equal(t, "Free x? Nobody holds it; it is kept for 1.0s. y: yes, other keys: no", forceQuestion(kept))
}

// Each look at a lock with many holders shows a different sample of them: only their number shows a
// change.
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
}

// The whole help is on a screen of 60 columns and 24 lines.
func TestTopHelpFits(t *testing.T) {
	t.Parallel()
	const around = 3 // the title, a blank line and the keys
	assert.LessOrEqual(t, len(strings.Split(wrapped(topHelp, 60), "\n"))+around, 24)
}

// The totals count what is shown. A limiter has no waiters, but reserved requests.
func TestTopTotals(t *testing.T) {
	t.Parallel()
	owner := latchkeytest.NewServer(t).Client().NewOwner()
	lock := seen("a lock", time.Second, owner)
	lock.Queued = 2
	running, done := seen("once:1", time.Second, owner), seen("once:2", time.Second)
	running.Kind, done.Kind = latchkey.KindOnce, latchkey.KindOnce
	api := latchkey.Object{Name: "api", Kind: latchkey.KindRate, Rate: latchkey.Rate{N: 2, Per: time.Hour, Burst: 2},
		Total: 2, Available: -15}
	l := newTopList()
	l.apply(topLook{began: time.Now(), found: []latchkey.Object{lock, running, done}})
	assert.Equal(t, "3 objects, 1 locked, 1 running, 2 waiting", l.totals())
	l.apply(topLook{began: time.Now(), found: []latchkey.Object{lock, running, done, api}})
	assert.Equal(t, "4 objects, 1 locked, 1 running, 2 waiting, 15 reserved", l.totals())
	l.filter = "once"
	l.arrange()
	assert.Equal(t, "2 of 4 objects, 0 locked, 1 running, 0 waiting", l.totals())
	assert.Equal(t, "-", waitersText(api))
	assert.Equal(t, "0", waitersText(done))
}

// f is offered where it can do something, and otherwise says what to do.
func TestTopForcesLocksOnly(t *testing.T) {
	t.Parallel()
	owner := latchkeytest.NewServer(t).Client().NewOwner()
	page := func(kind latchkey.Kind, holders ...latchkey.Owner) *topView {
		o := seen("x", time.Second, holders...)
		o.Kind = kind
		v := &topView{list: newTopList(), details: &topDetails{name: "x", object: o, loaded: true}}
		assert.Equal(t, o.Locked(), strings.Contains(v.foot(), "f force"))
		v.ask()
		return v
	}
	assert.NotNil(t, page(latchkey.KindLock, owner).asking)
	assert.Equal(t, "x is a Once: end its process", page(latchkey.KindOnce, owner).notice)
	assert.Equal(t, "x is a Once that is done: latchkey once NAME --forget", page(latchkey.KindOnce).notice)
	assert.Equal(t, "x is not a held lock", page(latchkey.KindRate).notice)
}

// The rows are sorted by the numbers in the column, whatever they count.
func TestTopSortsByWhatItShows(t *testing.T) {
	l := newTopList()
	barrier := latchkey.Object{Name: "barrier", Kind: latchkey.KindBarrier, Queued: 3, Total: 5}
	latch := latchkey.Object{Name: "latch", Kind: latchkey.KindLatch, Count: 7}
	pool := latchkey.Object{Name: "pool", Kind: latchkey.KindSemaphore, HolderCount: 4, Total: 9}
	number := latchkey.Object{Name: "number", Kind: latchkey.KindNumber, Count: 99}
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
		table := v.list.tableFor(size[0])
		for _, row := range v.list.shown {
			text := table.row(row, time.Now())
			if size[0] >= 40 {
				assert.LessOrEqual(t, uniseg.StringWidth(text), size[0])
			}
			assert.NotContains(t, text, "\x1b", "no name moves the cursor")
		}
	}
}

// The holder is on each screen. A narrow screen has fewer columns, whole ones, and always the one
// that sorts the rows.
func TestTopColumns(t *testing.T) {
	t.Parallel()
	v := &topView{list: newTopList()}
	lock := seen("invoices:2026-11", time.Hour, latchkeytest.NewServer(t).Client().NewOwner())
	lock.Holders[0].Label, lock.Queued = "payments-7d9f8b6c5:4211", 3
	v.list.apply(topLook{began: time.Now(), found: []latchkey.Object{lock}})
	table := func(width int) string {
		table := v.list.tableFor(width)
		return strings.TrimRight(v.head(table), " ") + "\n" + strings.TrimRight(table.row(v.list.shown[0], v.list.at), " ")
	}
	assert.Equal(t, "NAME             KIND      HOLDERS  WAITERS▼ TTL    HELD   HELD BY\n"+
		"invoices:2026-11 lock      1        3        60m    0.0s   payments-7d9f8b6c5:4211", table(200))
	assert.Equal(t, "NAME             KIND      HOLDERS  WAITERS▼ TTL    HELD BY\n"+
		"invoices:2026-11 lock      1        3        60m    payments-7d9f8b6c5:4211", table(80))
	assert.Equal(t, "NAME             HOLDERS  WAITERS▼ HELD BY\n"+
		"invoices:2026-11 1        3        payments-7d9f8b6c5:4211", table(60))
	v.list.sortBy(byAge)
	assert.Equal(t, "NAME             KIND      HOLDERS  WAITERS  HELD▼  HELD BY\n"+
		"invoices:2026-11 lock      1        3        0.0s   payments-7d9f8b6c5:4211", table(80))
}

func TestTopNeedsATerminal(t *testing.T) {
	t.Parallel()
	got := latchkeyCLI(t, latchkeytest.NewServer(t), "top")
	assert.Equal(t, exitUsage, got.code)
	assert.Contains(t, got.stderr, "latchkey ls")
}

// A question shows the whole name and the whole holder, on any screen. So do the other lines at the
// bottom.
func TestTopFootIsWhole(t *testing.T) {
	t.Parallel()
	client := latchkeytest.NewServer(t).Client()
	o := seen("orders:"+strings.Repeat("4", 150), time.Minute, client.NewOwner(), client.NewOwner(), client.NewOwner())
	o.Holders[0].Label = "payments-" + strings.Repeat("7", 70)
	filtered := newTopList()
	filtered.filter = strings.Repeat("orders 😀", 20)
	for _, width := range []int{1, 9, 60, 80, 200} {
		for _, v := range []*topView{
			{list: newTopList(), asking: &o}, {list: newTopList()}, {list: filtered}, {list: filtered, typing: true},
		} {
			lines := brokenInto(width, v.foot())
			for _, line := range lines {
				assert.LessOrEqual(t, uniseg.StringWidth(line), max(width, 2), line)
			}
			assert.Equal(t, strings.ReplaceAll(v.foot(), " ", ""), strings.ReplaceAll(strings.Join(lines, ""), " ", ""))
		}
	}
	assert.Equal(t, []string{"Take", "orders:42", "from", "web-1:4211"}, brokenInto(10, "Take orders:42 from web-1:4211"))
	assert.Equal(t, []string{"Take", "orders", ":42", "from"}, brokenInto(6, "Take orders:42 from"))
	assert.Equal(t, []string{"a  b", "c"}, brokenInto(4, "a  b c"), "no blank beyond the last column")
}
