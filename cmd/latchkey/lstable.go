package main

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/rivo/uniseg"

	"github.com/latchkey-go/latchkey"
)

// The table of ls. Its columns are also those of top.

// writeTable writes a table no wider than width, unless that is 0.
func writeTable(out io.Writer, found []latchkey.Object, width int) error {
	rows := [][]string{{"NAME", "KIND", "HOLDERS", "WAITERS", "TTL", "HELD BY"}}
	for _, o := range found {
		rows = append(rows, []string{
			printable(o.Name), kindText(o), holdersText(o), waitersText(o), shortTTL(o.TTL), heldBy(o),
		})
	}
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], uniseg.StringWidth(cell))
		}
	}
	if width > 0 {
		narrow(widths, width)
	}
	var text strings.Builder
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(fit(cell, widths[i]) + "  ")
		}
		text.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// narrow shrinks the column HELD BY, and then the column NAME, until the table fits into width.
func narrow(widths []int, width int) {
	const least = 12
	excess := 2*len(widths) - 2 - width
	for _, w := range widths {
		excess += w
	}
	for _, i := range []int{len(widths) - 1, 0} {
		if excess > 0 {
			less := min(excess, max(0, widths[i]-least))
			widths[i] -= less
			excess -= less
		}
	}
}

// kindText returns the kind, with a question mark if the key may belong to no object.
func kindText(o latchkey.Object) string {
	switch {
	case o.Kind == latchkey.KindNumber:
		return "number?"
	case o.Kind == latchkey.KindMutex && !isOurToken(o):
		return "mutex?"
	}
	return string(o.Kind)
}

// isOurToken reports whether the token of a mutex was made by this library.
func isOurToken(o latchkey.Object) bool {
	if len(o.Holders) == 0 {
		return false
	}
	_, err := latchkey.ParseOwner(o.Holders[0].Owner.String())
	return err == nil
}

func holdersText(o latchkey.Object) string {
	if o.Kind == latchkey.KindNumber { // it is unknown what it counts
		return "?"
	}
	text := strconv.FormatInt(holding(o), 10)
	switch o.Kind {
	case latchkey.KindSemaphore, latchkey.KindBarrier, latchkey.KindRate:
		text += fmt.Sprintf("/%d", o.Total)
	}
	return text
}

// waitersText returns how many wait. The server does not know who waits at a rate limiter.
func waitersText(o latchkey.Object) string {
	if o.Kind == latchkey.KindRate {
		return "-"
	}
	return strconv.Itoa(o.Waiters())
}

// holding returns how many hold a lock or a permit, how many wait at a barrier, the remaining count
// of a latch, or how many requests a rate limiter counts.
func holding(o latchkey.Object) int64 {
	switch o.Kind {
	case latchkey.KindBarrier:
		return int64(o.Queued)
	case latchkey.KindLatch:
		return o.Count
	case latchkey.KindRate:
		return int64(o.Total - o.Available)
	}
	return int64(o.HolderCount)
}

func heldBy(o latchkey.Object) string {
	if o.Kind == latchkey.KindNumber {
		return fmt.Sprintf("value %d", o.Count)
	}
	if isDone(o) {
		return "done"
	}
	if o.Kind == latchkey.KindRate {
		return o.Rate.String()
	}
	if len(o.Holders) == 0 {
		return ""
	}
	first := o.Holders[0]
	text := printable(cmp.Or(first.Label, first.Owner.String()))
	if first.Note != "" {
		text += fmt.Sprintf(" %q", first.Note)
	}
	switch {
	case first.Kept:
		text = "released, kept: " + text
	case o.Kind == latchkey.KindRWLock:
		text = map[bool]string{true: "writes: ", false: "reads: "}[first.Write] + text
	}
	if first.Count > 1 {
		text += fmt.Sprintf(", %d times", first.Count)
	}
	if o.HolderCount > 1 {
		text += fmt.Sprintf(", %d more", o.HolderCount-1)
	}
	return text
}
