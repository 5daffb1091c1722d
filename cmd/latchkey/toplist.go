package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rivo/uniseg"

	"github.com/latchkey-go/latchkey"
)

// topRow is one object, with what top has seen of it over time.
type topRow struct {
	latchkey.Object

	since time.Time // when the same holders were first seen
}

// topLook is the result of one walk.
type topLook struct {
	began time.Time
	found []latchkey.Object
	err   error
}

// topList has the result of the latest look, in the chosen order.
type topList struct {
	rows map[string]*topRow
	at   time.Time // of the latest look

	order   topOrder
	reverse bool
	filter  string
	shown   []*topRow
	widest  int // the width of the widest name that is shown
}

func newTopList() *topList {
	return &topList{rows: map[string]*topRow{}, order: byWaiters}
}

// apply replaces the rows with the result of a look.
func (l *topList) apply(look topLook) {
	next := make(map[string]*topRow, len(look.found))
	for _, o := range look.found {
		row := &topRow{Object: o, since: look.began}
		if last := l.rows[o.Name]; last != nil && sameHolders(last.Object, o) {
			row.since = last.since
		}
		next[o.Name] = row
	}
	l.rows, l.at = next, look.began
	l.arrange()
}

// sampled reports whether o has only a sample of the holders. Each look has a different sample.
func sampled(o latchkey.Object) bool { return o.Locked() && o.HolderCount > len(o.Holders) }

func holds(o latchkey.Object, wanted latchkey.Holder) bool {
	return slices.ContainsFunc(o.Holders, func(h latchkey.Holder) bool {
		return h.Owner == wanted.Owner && h.Write == wanted.Write && h.Kept == wanted.Kept
	})
}

func sameHolders(a, b latchkey.Object) bool {
	if a.Kind != b.Kind || a.HolderCount != b.HolderCount {
		return false
	}
	return sampled(a) || !slices.ContainsFunc(b.Holders, func(h latchkey.Holder) bool { return !holds(a, h) })
}

// topOrder is the order of the rows.
type topOrder rune

const (
	byWaiters topOrder = 'w'
	byHolders topOrder = 'h'
	byAge     topOrder = 'a'
	byTTL     topOrder = 't'
	byName    topOrder = 'n'
)

// compare puts the most interesting row first: the one with the largest value. Rows with equal
// values are sorted by name, which arrange does.
func (o topOrder) compare(a, b *topRow) int {
	switch o {
	case byWaiters:
		return cmp.Compare(b.Waiters(), a.Waiters())
	case byHolders:
		return cmp.Compare(holding(b.Object), holding(a.Object))
	case byAge:
		return a.since.Compare(b.since)
	case byTTL:
		return cmp.Compare(b.TTL, a.TTL)
	}
	return 0
}

// sortBy sets the order. If the rows already have that order, it reverses them.
func (l *topList) sortBy(order topOrder) {
	l.reverse = l.order == order && !l.reverse
	l.order = order
	l.arrange()
}

// arrange filters and sorts.
func (l *topList) arrange() {
	l.shown, l.widest = l.shown[:0], 0
	for _, row := range l.rows {
		if strings.Contains(row.Name, l.filter) {
			l.shown = append(l.shown, row)
			l.widest = max(l.widest, uniseg.StringWidth(printable(row.Name)))
		}
	}
	slices.SortFunc(l.shown, func(a, b *topRow) int {
		first, second := a, b
		if l.reverse {
			first, second = b, a
		}
		return cmp.Or(l.order.compare(first, second), cmp.Compare(first.Name, second.Name))
	})
}

// totals returns the totals of the objects that are shown: how many locks are held, how many Onces
// run, how many wait, and how many requests are reserved at rate limiters.
func (l *topList) totals() string {
	locked, running, waiting, reserved := 0, 0, 0, 0
	for _, row := range l.shown {
		switch {
		case row.Locked():
			locked++
		case row.Kind == latchkey.KindOnce && !isDone(row.Object):
			running++
		case row.Kind == latchkey.KindRate:
			reserved += max(-row.Available, 0)
		}
		waiting += row.Waiters()
	}
	text := fmt.Sprintf("%d objects", len(l.rows))
	if l.filter != "" {
		text = fmt.Sprintf("%d of %s", len(l.shown), text)
	}
	text += fmt.Sprintf(", %d locked", locked)
	if running > 0 {
		text += fmt.Sprintf(", %d running", running)
	}
	text += fmt.Sprintf(", %d waiting", waiting)
	if reserved > 0 {
		text += fmt.Sprintf(", %d reserved", reserved)
	}
	return text
}
