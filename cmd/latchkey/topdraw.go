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

// topChrome is the number of lines that are not rows: title, totals, head and foot.
const topChrome = 4

var (
	plain  = tcell.StyleDefault
	strong = plain.Bold(true)
	titled = strong.Underline(true)
	marked = plain.Reverse(true)
)

// topColumn is a column of the table after NAME.
type topColumn struct {
	title string
	width int // 0: the remaining width, if there is enough
	order topOrder
	text  func(row *topRow, now time.Time) string
}

var topColumns = []topColumn{
	{"KIND", 9, 0, func(r *topRow, _ time.Time) string { return kindText(r.Object) }},
	{"HOLD", 7, byHolders, func(r *topRow, _ time.Time) string { return holdersText(r.Object) }},
	{"WAIT", 5, byWaiters, func(r *topRow, _ time.Time) string { return strconv.Itoa(r.Waiters()) }},
	{"TTL", 6, byTTL, func(r *topRow, _ time.Time) string { return shortTTL(r.TTL) }},
	{"HELD", 6, byAge, func(r *topRow, now time.Time) string { return shortTime(now.Sub(r.since)) }},
	{"ACQ/S", 6, byAcquired, func(r *topRow, _ time.Time) string { return rateText(r.acquired) }},
	{"LOST/S", 6, byLost, func(r *topRow, _ time.Time) string { return rateText(r.lost) }},
	{"HELD BY", 0, 0, func(r *topRow, _ time.Time) string { return heldBy(r.Object) }},
}

const (
	leastName  = 16
	mostName   = 48
	leastOwner = 24
)

// draw draws the whole screen. If the result of a look is new on the screen, it draws again, to show how long the
// refresh took: from the first query until its result was drawn.
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
	switch {
	case v.helping:
		v.drawHelp(width, height)
	case v.details != nil:
		v.drawDetails(width, height)
	default:
		v.drawList(width, height)
	}
	v.line(height-1, width, marked, v.foot(width))
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
	state := fmt.Sprintf("every %v", v.every)
	switch {
	case v.failed != nil:
		state = "FAILED: " + plainError{v.failed}.Error()
	case v.paused:
		state = "paused"
	case v.list.at.IsZero():
		state = "scanning"
	case v.took > 0:
		state += fmt.Sprintf(", took %v", v.took.Round(time.Millisecond))
	}
	text := "latchkey top  " + printable(v.pattern)
	if !v.list.at.IsZero() {
		text += v.list.at.Format("  15:04:05")
	}
	return text + "  " + state
}

func (v *topView) drawList(width, height int) {
	l := v.list
	locks, waiting := l.totals()
	v.line(0, width, strong, v.title())
	v.line(1, width, plain, fmt.Sprintf("%d objects, %d locked, %d waiting; %s acquired/s, %s lost/s seen",
		len(l.rows), locks, waiting, rateText(l.acquired), rateText(l.lost)))
	name, owner := topWidths(width)
	v.line(2, width, titled, v.head(name, owner))

	at, selected := v.selectedRow()
	page := max(0, height-topChrome)
	v.offset = min(max(v.offset, at-page+1), max(at, 0))
	now := time.Now()
	for i := range min(page, len(l.shown)-v.offset) {
		row, style := l.shown[v.offset+i], plain
		if row == selected {
			style = marked
		}
		v.line(3+i, width, style, rowText(row, now, name, owner))
	}
}

// topWidths returns the widths of the columns NAME and HELD BY. owner is 0 if there is no room for HELD BY.
func topWidths(width int) (name, owner int) {
	for _, column := range topColumns {
		if column.width > 0 {
			width -= column.width + 1
		}
	}
	if width-leastOwner-1 >= leastName {
		name = min(mostName, (width-1)/2)
		return name, width - 1 - name
	}
	return max(leastName, width), 0
}

// head returns the titles of the columns. It marks the column by which the rows are sorted.
func (v *topView) head(name, owner int) string {
	mark := func(title string, order topOrder) string {
		if order != v.list.order {
			return title
		}
		return title + map[bool]string{false: "▼", true: "▲"}[v.list.reverse]
	}
	text := fit(mark("NAME", byName), name)
	for _, column := range topColumns {
		switch {
		case column.width > 0:
			title := mark(column.title, column.order)
			if column.order == 0 {
				title = column.title
			}
			text += " " + fit(title, column.width)
		case owner > 0:
			text += " " + fit(column.title, owner)
		}
	}
	return text
}

func rowText(row *topRow, now time.Time, name, owner int) string {
	text := fit(printable(row.Name), name)
	for _, column := range topColumns {
		width := column.width
		if width == 0 {
			width = owner
		}
		if width > 0 {
			text += " " + fit(column.text(row, now), width)
		}
	}
	return text
}

func (v *topView) drawHelp(width, height int) {
	v.line(0, width, strong, "latchkey top")
	lines := strings.Split(wrapped(topHelp, width), "\n")
	for i, text := range lines[:min(len(lines), max(0, height-3))] {
		v.line(2+i, width, plain, text)
	}
}

func (v *topView) drawDetails(width, height int) {
	d := v.details
	o := d.object
	lines := []string{"", row("kind", kindLine(d)), row("key", printable(o.Key)), row("expires", expiry(o.Inspection))}
	if o.Token > 0 {
		lines = append(lines, row("token", strconv.FormatInt(o.Token, 10)+", the last one issued"))
	}
	if o.Kind == latchkey.KindNumber {
		lines = append(lines, row("value", strconv.FormatInt(o.Count, 10)))
	} else {
		lines = append(lines, row("holders", holdersText(o)))
	}
	for _, holder := range o.Holders {
		lines = append(lines, row("held by", holderText(o.Inspection, holder)))
	}
	lines = append(lines, row("waiters", fmt.Sprintf("%d: %s", o.Waiters(), waitingText(o, o.Queued))))
	for _, w := range d.waiters {
		lines = append(lines, row("waits", waiterText(o.Kind, w)))
	}
	if d.err != nil {
		lines = append(lines, row("FAILED", plainError{d.err}.Error()))
	}
	v.line(0, width, strong, printable(d.name))
	for i, text := range lines[:min(len(lines), max(0, height-2))] {
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

// foot returns the last line: the question, the filter, the notice, or the keys.
func (v *topView) foot(width int) string {
	switch {
	case v.asking != nil:
		return forceQuestion(*v.asking, width)
	case v.helping:
		return "esc back  q quit"
	case v.typing:
		return "filter: " + v.list.filter + "_  (enter: keep, esc: clear)"
	case v.notice != "":
		return v.notice
	case v.details != nil:
		return "esc back  f force  space poll  q quit"
	case v.list.filter != "":
		return withNames(width, "filter: %s  / change  enter details  f force  q quit", v.list.filter)
	}
	return "sort: w h a t c l n  / filter  enter details  f force  p pause  ? help  q quit"
}

// forceQuestion returns the question before a lock is forced. A lock that is kept has no holders left.
func forceQuestion(o latchkey.Object, width int) string {
	anybody := func(latchkey.Holder) bool { return true }
	if !sampled(o) && len(o.Holders) > 0 && countHolders(o, anybody) == 0 {
		return question(width, "Free %s?", " Nobody holds it; it is kept for "+shortTTL(o.TTL)+".", o.Name)
	}
	if more := o.HolderCount - 1; more > 0 {
		return question(width, "Take %s from %s and "+strconv.Itoa(more)+" more?", " They may be working.", o.Name, holderName(o))
	}
	return question(width, "Take %s from %s?", " It may be working.", o.Name, holderName(o))
}

// question returns a line that always shows the keys. It omits the remark if the names would not have enough room.
func question(width int, format, remark string, names ...string) string {
	const keys, leastName = " y: yes, other keys: no", 12
	text := format + remark + keys
	if roomFor(text, width) < min(leastName*len(names), uniseg.StringWidth(strings.Join(names, ""))) {
		text = format + keys
	}
	return withNames(width, text, names...)
}

// holderName returns the name of the first holder.
func holderName(o latchkey.Object) string {
	if len(o.Holders) == 0 {
		return "its holder"
	}
	return cmp.Or(o.Holders[0].Label, o.Holders[0].Owner.String())
}

// withNames puts names into a text, and shortens the longest name until the line fits.
func withNames(width int, format string, names ...string) string {
	room := roomFor(format, width)
	shown, widths := make([]any, len(names)), make([]int, len(names))
	for i, name := range names {
		names[i] = printable(name)
		widths[i] = uniseg.StringWidth(names[i])
		room -= widths[i]
	}
	for ; room < 0; room++ {
		longest := slices.Index(widths, slices.Max(widths))
		widths[longest] = max(1, widths[longest]-1)
	}
	for i, name := range names {
		shown[i] = fit(name, widths[i])
	}
	return fmt.Sprintf(format, shown...)
}

// roomFor returns how many columns a format leaves for its names.
func roomFor(format string, width int) int {
	return width - uniseg.StringWidth(strings.ReplaceAll(format, "%s", ""))
}

func rateText(rate float64) string {
	switch {
	case rate == 0:
		return "0"
	case rate < 10:
		return fmt.Sprintf("%.1f", rate)
	}
	return fmt.Sprintf("%.0f", min(rate, 999999))
}
