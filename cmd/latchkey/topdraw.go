package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/uniseg"

	"github.com/latchkey-go/latchkey"
)

var (
	plain  = tcell.StyleDefault
	faint  = plain.Dim(true)
	strong = plain.Bold(true)
	titled = strong.Underline(true)
	marked = plain.Reverse(true)
)

// topColumn is a column of the table between NAME and HELD BY, which share the width that is left.
type topColumn struct {
	title string
	width int
	drop  int // the column with the largest number is left out first
	order topOrder
	text  func(row *topRow, at time.Time) string
}

var topColumns = []topColumn{
	{"KIND", 9, 3, 0, func(r *topRow, _ time.Time) string { return kindText(r.Object) }},
	{"HOLDERS", 8, 2, byHolders, func(r *topRow, _ time.Time) string { return holdersText(r.Object) }},
	{"WAITERS", 8, 1, byWaiters, func(r *topRow, _ time.Time) string { return waitersText(r.Object) }},
	{"TTL", 6, 4, byTTL, func(r *topRow, _ time.Time) string { return shortTTL(r.TTL) }},
	{"HELD", 6, 5, byAge, func(r *topRow, at time.Time) string { return shortTime(at.Sub(r.since)) }},
}

const (
	leastTitle = 5 // NAME and a mark
	leastName  = 18
	mostName   = 48
	leastOwner = 22
)

// topTable is the columns that fit a screen, with the widths of NAME and HELD BY.
type topTable struct {
	columns     []topColumn
	name, owner int
}

// tableFor leaves out columns until NAME and HELD BY have enough room, the one that sorts the rows
// last.
func (l *topList) tableFor(width int) topTable {
	columns := slices.Clone(topColumns)
	left := func() int {
		left := width - 1
		for _, column := range columns {
			left -= column.width + 1
		}
		return left
	}
	rank := func(c topColumn) int {
		if c.order == l.order {
			return 0
		}
		return c.drop
	}
	for len(columns) > 0 && left() < leastName+leastOwner {
		last := slices.MaxFunc(columns, func(a, b topColumn) int { return cmp.Compare(rank(a), rank(b)) })
		columns = slices.DeleteFunc(columns, func(c topColumn) bool { return c.title == last.title })
	}
	name := min(max(l.widest, leastTitle), mostName, max(left()/2, left()-leastOwner))
	return topTable{columns, name, left() - name}
}

// draw draws the whole screen. If the result of a look is new on the screen, it draws again, to
// show how long the refresh took: from the first query until its result was drawn.
func (v *topView) draw() {
	v.drawScreen()
	if !v.undrawn.IsZero() {
		v.took, v.undrawn = time.Since(v.undrawn), time.Time{}
		v.drawScreen()
	}
}

// drawScreen sends what has changed to the terminal.
func (v *topView) drawScreen() {
	v.screen.Clear()
	width, height := v.screen.Size()
	foot := brokenInto(width, v.foot())
	height -= len(foot)
	switch {
	case v.helping:
		v.drawHelp(width, height)
	case v.details != nil:
		v.drawDetails(width, height)
	default:
		v.drawList(width, height)
	}
	for i, text := range foot {
		v.line(height+i, width, marked, text)
	}
	v.screen.Show()
}

// line writes one line of the screen, cut to its width.
func (v *topView) line(y, width int, style tcell.Style, text string) {
	if y < 0 || width < 1 {
		return
	}
	x := 0
	for clusters := uniseg.NewGraphemes(fit(text, width)); clusters.Next(); {
		runes := clusters.Runes()
		v.screen.SetContent(x, y, runes[0], runes[1:], style)
		x += clusters.Width()
	}
}

// title returns the first line of the list.
func (v *topView) title() string {
	text := "latchkey top  " + printable(v.pattern)
	if v.list.at.IsZero() {
		return text + "  scanning"
	}
	text += v.list.at.Format("  15:04:05")
	switch {
	case v.failed != nil:
		return text + "  FAILED"
	case v.paused:
		return text + "  paused"
	case v.took > 0:
		return text + fmt.Sprintf("  every %v, took %v", v.every, v.took.Round(time.Millisecond))
	}
	return text + fmt.Sprintf("  every %v", v.every)
}

// summary returns the lines below the title: the totals, and how old they are if no look replaces
// them.
func (v *topView) summary(width int) []string {
	text := v.list.totals()
	if (v.failed != nil || v.paused) && !v.list.at.IsZero() {
		text += "; " + shortTime(time.Since(v.list.at)) + " old"
	}
	if v.failed != nil {
		text += "; " + strings.TrimPrefix(plainError{v.failed}.Error(), fmt.Sprintf("objects %q: ", v.pattern))
	}
	return brokenInto(width, text)
}

func (v *topView) drawList(width, height int) {
	l := v.list
	v.line(0, width, strong, v.title())
	above := 1
	for _, text := range v.summary(width) {
		v.line(above, width, plain, text)
		above++
	}
	table := l.tableFor(width)
	v.line(above, width, titled, v.head(table))
	above++

	at, selected := v.selectedRow()
	page := max(0, height-above)
	v.offset = min(max(v.offset, at-page+1), max(at, 0))
	for i := range min(page, len(l.shown)-v.offset) {
		row, style := l.shown[v.offset+i], plain
		if v.failed != nil {
			style = faint
		}
		v.line(above+i, width, style.Reverse(row == selected), table.row(row, l.at))
	}
}

// head returns the titles of the columns. It marks the column by which the rows are sorted.
func (v *topView) head(t topTable) string {
	mark := func(title string, order topOrder) string {
		if order != v.list.order {
			return title
		}
		return title + map[bool]string{false: "▼", true: "▲"}[v.list.reverse]
	}
	text := fit(mark("NAME", byName), t.name)
	for _, column := range t.columns {
		text += " " + fit(mark(column.title, column.order), column.width)
	}
	return text + " " + fit("HELD BY", t.owner)
}

// row returns the line of one object, as a look at that time found it.
func (t topTable) row(row *topRow, at time.Time) string {
	text := fit(printable(row.Name), t.name)
	for _, column := range t.columns {
		text += " " + fit(column.text(row, at), column.width)
	}
	return text + " " + fit(heldBy(row.Object), t.owner)
}

func (v *topView) drawHelp(width, height int) {
	v.line(0, width, strong, "latchkey top")
	lines := strings.Split(wrapped(topHelp, width), "\n")
	for i, text := range lines[:min(len(lines), max(0, height-2))] {
		v.line(2+i, width, plain, text)
	}
}

func (v *topView) drawDetails(width, height int) {
	d := v.details
	o := d.object
	lines := []string{"\n", row("kind", kindLine(d)), row("key", printable(o.Key)), row("expires", expiry(o))}
	if o.Token > 0 {
		lines = append(lines, row("token", strconv.FormatInt(o.Token, 10)+", the last one issued"))
	}
	switch o.Kind {
	case latchkey.KindRate:
		lines = append(lines, limiterRows(o))
	case latchkey.KindNumber:
		lines = append(lines, row("value", strconv.FormatInt(o.Count, 10)))
	default:
		lines = append(lines, row("holders", holdersText(o)))
	}
	for _, holder := range o.Holders {
		lines = append(lines, row("held by", holderText(o, holder)))
	}
	if o.Kind != latchkey.KindRate {
		lines = append(lines, row("waiters", fmt.Sprintf("%d: %s", o.Waiters(), waitingText(o, o.Queued))))
	}
	for _, w := range d.waiters {
		lines = append(lines, row("waits", waiterText(o.Kind, w)))
	}
	if d.err != nil {
		lines = append(lines, row("FAILED", plainError{d.err}.Error()))
	}
	v.line(0, width, strong, printable(d.name))
	lines = strings.Split(linesIn(strings.Join(lines, ""), width), "\n")
	for i, text := range lines[:min(len(lines), max(0, height-1))] {
		v.line(1+i, width, plain, text)
	}
}

func kindLine(d *topDetails) string {
	switch {
	case !d.loaded:
		return kindText(d.object)
	case d.object.What == "":
		return "none: free or gone"
	}
	return d.object.What
}

// foot returns the text at the bottom: the question, the filter, the notice, or the keys.
func (v *topView) foot() string {
	switch {
	case v.asking != nil:
		return forceQuestion(*v.asking)
	case v.helping:
		return "esc back  q quit"
	case v.typing:
		return "filter: " + v.list.filter + "_  (enter: keep, esc: clear)"
	case v.notice != "":
		return v.notice
	case v.details != nil && v.details.object.Locked():
		return "esc back  f force  space poll  q quit"
	case v.details != nil:
		return "esc back  space poll  q quit"
	case v.list.filter != "":
		return "filter: " + printable(v.list.filter) + "  / change  enter details  f force  q quit"
	}
	return "sort: w h a t n  / filter  enter details  f force  p pause  ? help  q quit"
}

// forceQuestion returns the question before a lock is forced. A lock that is kept has no holders
// left.
func forceQuestion(o latchkey.Object) string {
	const keys = " y: yes, other keys: no"
	name := printable(o.Name)
	works := func(h latchkey.Holder) bool { return !h.Kept }
	if !sampled(o) && len(o.Holders) > 0 && !slices.ContainsFunc(o.Holders, works) {
		return "Free " + name + "? Nobody holds it; it is kept for " + shortTTL(o.TTL) + "." + keys
	}
	holder := "its holder"
	if len(o.Holders) > 0 {
		holder = printable(cmp.Or(o.Holders[0].Label, o.Holders[0].Owner.String()))
	}
	if more := o.HolderCount - 1; more > 0 {
		return fmt.Sprintf("Take %s from %s and %d more? They may be working.%s", name, holder, more, keys)
	}
	return "Take " + name + " from " + holder + "? It may be working." + keys
}
