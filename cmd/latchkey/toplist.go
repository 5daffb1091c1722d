package main

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey"
)

// topRow is one object, with what top has seen of it over time.
type topRow struct {
	latchkey.Object

	since    time.Time // when the same holders were first seen
	acquired float64   // per second, between the last two looks
	lost     float64
}

// topLook is the result of one walk.
type topLook struct {
	began time.Time
	found []latchkey.Object
	err   error
}

// topList has the result of the latest look, in the chosen order.
type topList struct {
	rows     map[string]*topRow
	at       time.Time // of the latest look
	acquired float64   // of all objects, per second
	lost     float64

	order   topOrder
	reverse bool
	filter  string
	shown   []*topRow
}

func newTopList() *topList {
	return &topList{rows: map[string]*topRow{}, order: byWaiters}
}

// apply replaces the rows with the result of a look.
func (l *topList) apply(look topLook) {
	elapsed := look.began.Sub(l.at)
	first := l.at.IsZero()
	next := make(map[string]*topRow, len(look.found))
	var acquired, lost int
	for _, o := range look.found {
		row := &topRow{Object: o, since: look.began}
		next[o.Name] = row
		if first {
			continue
		}
		last := l.rows[o.Name]
		if last == nil {
			last = &topRow{}
		}
		came, ran := changes(last.Object, o, elapsed)
		if came == 0 && ran == 0 && sameHolders(last.Object, o) {
			row.since = last.since
		}
		row.acquired, row.lost = rate(came, elapsed), rate(ran, elapsed)
		acquired, lost = acquired+came, lost+ran
	}
	for name, last := range l.rows {
		if next[name] == nil {
			_, ran := changes(last.Object, latchkey.Object{}, elapsed)
			lost += ran
		}
	}
	l.rows, l.at = next, look.began
	l.acquired, l.lost = rate(acquired, elapsed), rate(lost, elapsed)
	if first {
		l.acquired, l.lost = 0, 0
	}
	l.arrange()
}

func rate(n int, elapsed time.Duration) float64 {
	if n == 0 || elapsed <= 0 {
		return 0
	}
	return float64(n) / elapsed.Seconds()
}

// changes returns how many holders came between two looks at an object, and how many left whose lease may have expired
// in that time. A holder whose lease was longer than that time must have released the lock. An owner whose lock is kept
// has released it, and counts as neither.
func changes(last, now latchkey.Object, elapsed time.Duration) (came, ran int) {
	locks := last.Locked() || now.Locked()
	if !locks || sampled(last) || sampled(now) { // the holders of a semaphore are not known
		came, ran = max(0, now.HolderCount-last.HolderCount), max(0, last.HolderCount-now.HolderCount)
	} else {
		came = countHolders(now, func(h latchkey.Holder) bool { return !holds(last, h) })
		ran = countHolders(last, func(h latchkey.Holder) bool { return !holds(now, h) && !holds(now, released(h)) })
	}
	if !locks || last.TTL > elapsed {
		ran = 0
	}
	return came, ran
}

// countHolders counts the holders for which is returns true. It leaves out the former owner of a lock that is kept.
func countHolders(o latchkey.Object, is func(latchkey.Holder) bool) (n int) {
	for _, holder := range o.Holders {
		if !holder.Kept && is(holder) {
			n++
		}
	}
	return n
}

// released returns the holder as it is shown when its lock is kept after its release.
func released(h latchkey.Holder) latchkey.Holder {
	h.Kept = true
	return h
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
	byWaiters  topOrder = 'w'
	byHolders  topOrder = 'h'
	byAge      topOrder = 'a'
	byTTL      topOrder = 't'
	byAcquired topOrder = 'c'
	byLost     topOrder = 'l'
	byName     topOrder = 'n'
)

// compare puts the most interesting row first: the one with the largest value. Rows with equal values are sorted by
// name, which arrange does.
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
	case byAcquired:
		return cmp.Compare(b.acquired, a.acquired)
	case byLost:
		return cmp.Compare(b.lost, a.lost)
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
	l.shown = l.shown[:0]
	for _, row := range l.rows {
		if strings.Contains(row.Name, l.filter) {
			l.shown = append(l.shown, row)
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

// totals returns the totals of all objects.
func (l *topList) totals() (locks, waiting int) {
	for _, row := range l.rows {
		if row.Locked() {
			locks++
		}
		waiting += row.Waiters()
	}
	return locks, waiting
}
