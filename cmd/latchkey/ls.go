package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
)

func lsCommand() *cli.Command {
	return &cli.Command{
		Name:      "ls",
		Usage:     "list held locks, semaphores, closed latches and barriers",
		ArgsUsage: "[PREFIX]",
		Description: `Lists all objects whose names begin with PREFIX, sorted by name. It scans all keys of
the server in small batches, including keys that are not objects.

HOLDERS  holders of a lock; acquired/total permits; remaining count of a latch;
         waiting/total parties of a barrier; ? for number?
WAITERS  owners in queues, or clients that listen, which they still do for some
         seconds after their last wait
kinds    lock: re-entrant, fenced, spin or fair; mutex?: possibly application
         data; number?: a semaphore with no permit acquired, a semaphore or latch
         of Redisson, or a counter

If nothing is found, that is not an error: exit code 0.

  latchkey ls orders:
  latchkey ls --match 'orders:*:eu' --json`,
		Flags: []cli.Flag{
			prefixFlag(),
			matchFlag(),
			jsonFlag(),
		},
		Action: ls,
	}
}

func ls(ctx context.Context, cmd *cli.Command) error {
	pattern, err := patternOf(cmd)
	if err != nil {
		return err
	}
	return atServer(ctx, cmd, func(ctx context.Context, client *latchkey.Client) error {
		found, err := allObjects(ctx, client, pattern)
		if err != nil {
			return libraryError(err)
		}
		if cmd.Bool("json") {
			return writeObjects(cmd.Root().Writer, found)
		}
		return writeTable(cmd.Root().Writer, found, terminalWidth(cmd.Root().Writer))
	})
}

func prefixFlag() cli.Flag {
	return &cli.StringFlag{Name: "prefix", Usage: "same as the argument `PREFIX`"}
}

func matchFlag() cli.Flag {
	return &cli.StringFlag{Name: "match", Usage: "only names that match `PATTERN`, which may contain *, ? and [a-z]"}
}

// patternOf returns the pattern of the names, from a flag or the argument.
func patternOf(cmd *cli.Command) (string, error) {
	match, prefix, args := cmd.String("match"), cmd.String("prefix"), cmd.Args().Slice()
	if prefix != "" {
		args = append(args, prefix)
	}
	switch {
	case len(args) > 1, len(args) == 1 && match != "":
		return "", usageError("%s takes one PREFIX or --match; see %s --help", cmd.Name, cmd.FullName())
	case match != "":
		return match, nil
	case len(args) == 0:
		return "*", nil
	}
	return latchkey.QuotePattern(args[0]) + "*", nil
}

// allObjects returns all objects that match, each once, sorted by name.
func allObjects(ctx context.Context, client *latchkey.Client, pattern string) ([]latchkey.Object, error) {
	byName := map[string]latchkey.Object{}
	for o, err := range client.Objects(ctx, pattern) {
		if err != nil {
			return nil, err
		}
		byName[o.Name] = o
	}
	all := make([]latchkey.Object, 0, len(byName))
	for _, o := range byName {
		all = append(all, o)
	}
	slices.SortFunc(all, func(a, b latchkey.Object) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// objectReply is what --json prints for one object; fields may be added to it, not changed.
type objectReply struct {
	inspectionReply

	HolderCount int    `json:"holder_count"`
	Waiters     int    `json:"waiters"`
	Queued      int    `json:"queued"`
	Listeners   int    `json:"listeners"`
	Available   *int   `json:"available,omitempty"` // of a semaphore
	Permits     *int   `json:"permits,omitempty"`
	Left        *int64 `json:"left,omitempty"`    // of a latch, and parties that a barrier waits for
	Parties     *int   `json:"parties,omitempty"` // of a barrier
}

func objectJSON(o latchkey.Object) objectReply {
	reply := objectReply{inspectionReply: inspectionJSON(o.Inspection), HolderCount: o.HolderCount,
		Waiters: o.Waiters(), Queued: o.Queued, Listeners: o.Listeners}
	switch o.Kind {
	case latchkey.KindSemaphore:
		reply.Available, reply.Permits = &o.Available, &o.Total
	case latchkey.KindLatch:
		reply.Left = &o.Count
	case latchkey.KindBarrier:
		reply.Left, reply.Parties = &o.Count, &o.Total
	}
	return reply
}

func writeObjects(out io.Writer, found []latchkey.Object) error {
	replies := make([]objectReply, len(found))
	for i, o := range found {
		replies[i] = objectJSON(o)
	}
	return writeJSON(out, replies)
}

// writeTable writes a table no wider than width, unless that is 0.
func writeTable(out io.Writer, found []latchkey.Object, width int) error {
	rows := [][]string{{"NAME", "KIND", "HOLDERS", "WAITERS", "TTL", "HELD BY"}}
	for _, o := range found {
		rows = append(rows, []string{
			printable(o.Name), kindText(o), holdersText(o), strconv.Itoa(o.Waiters()), shortTTL(o.TTL), heldBy(o),
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

// fit makes a text exactly as wide as a column. A text that is too long ends with ….
func fit(text string, width int) string {
	if have := uniseg.StringWidth(text); have <= width {
		return text + strings.Repeat(" ", width-have)
	}
	var kept strings.Builder
	at := 0
	for clusters := uniseg.NewGraphemes(text); clusters.Next(); {
		if at+clusters.Width() > width-1 {
			break
		}
		kept.WriteString(clusters.Str())
		at += clusters.Width()
	}
	if width > 0 {
		kept.WriteString("…")
		at++
	}
	return kept.String() + strings.Repeat(" ", max(0, width-at))
}

// printable returns a name that a terminal can show: it quotes a name with unprintable characters.
func printable(name string) string {
	if !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(name)
	}
	return name
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
	if o.Kind == latchkey.KindSemaphore || o.Kind == latchkey.KindBarrier {
		text += fmt.Sprintf("/%d", o.Total)
	}
	return text
}

// holding returns how many hold a lock or a permit, how many wait at a barrier, or the remaining count of a latch.
func holding(o latchkey.Object) int64 {
	switch o.Kind {
	case latchkey.KindBarrier:
		return int64(o.Queued)
	case latchkey.KindLatch:
		return o.Count
	}
	return int64(o.HolderCount)
}

func heldBy(o latchkey.Object) string {
	if o.Kind == latchkey.KindNumber {
		return fmt.Sprintf("value %d", o.Count)
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

// shortTTL returns a remaining time in at most six characters.
func shortTTL(ttl time.Duration) string {
	if ttl == latchkey.NoExpiry {
		return "never"
	}
	return shortTime(ttl)
}

func shortTime(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", min(99999, int(d.Hours()/24)))
}
