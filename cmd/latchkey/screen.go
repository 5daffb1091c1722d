package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rivo/uniseg"
	"golang.org/x/term"
)

const (
	liveFrame  = 100 * time.Millisecond
	plainFrame = 2 * time.Second
	// mostText is how wide the demo writes at most: longer lines are hard to read.
	mostText = 100
	margin   = "   "
)

// screen shows progress: redrawn in place on a terminal, as a line now and then
// elsewhere, so that the log of a build stays readable. One goroutine uses it.
type screen struct {
	out     io.Writer
	live    bool
	colours bool
	rows    []string // on the screen now, below everything that was said
	drawn   time.Time
	stopped atomic.Bool
	resumed atomic.Bool // and others have written since
}

func newScreen(out io.Writer) *screen {
	live := isTerminal(out)
	return &screen{out: out, live: live, colours: live && os.Getenv("NO_COLOR") == ""}
}

// isTerminal reports whether something can be redrawn there.
func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(file.Fd()))
}

// terminalWidth is how many columns the terminal has now, 0 if it is none.
func terminalWidth(out io.Writer) int {
	if !isTerminal(out) {
		return 0
	}
	width, _, err := term.GetSize(int(out.(*os.File).Fd()))
	if err != nil {
		return 0
	}
	return width
}

// style is how a text stands out where there are colours.
type style string

const (
	bold  style = "1"
	faint style = "2"
	good  style = "32"
	bad   style = "31"
)

func (s *screen) paint(as style, text string) string {
	if !s.colours {
		return text
	}
	return "\x1b[" + string(as) + "m" + text + "\x1b[0m"
}

// width is how wide text is to be now: the terminal may have changed.
func (s *screen) width() int { return textWidth(s.out, mostText) }

// period is how often it makes sense to call show.
func (s *screen) period() time.Duration {
	if s.live {
		return liveFrame
	}
	return plainFrame
}

// continued tells that the program was stopped, and goes on below what others have written since. It may be called by
// any goroutine.
func (s *screen) continued() {
	s.stopped.Store(true)
	s.resumed.Store(true)
}

// say writes what stays, above the rows that are being redrawn.
func (s *screen) say(format string, args ...any) {
	s.sayIn("", "", format, args...)
}

// sayIn writes a paragraph in a style, each of its lines behind an indent.
func (s *screen) sayIn(as style, indent, format string, args ...any) {
	rows := s.rows
	s.erase()
	text := fmt.Sprintf(format, args...)
	for line := range strings.SplitSeq(wrapped(text, s.width()-len(indent)), "\n") {
		if as != "" && line != "" {
			line = s.paint(as, line)
		}
		s.print(strings.TrimRight(indent+line, " ") + "\n")
	}
	s.draw(rows)
}

// show replaces the rows; where nothing can be redrawn it writes the summary.
func (s *screen) show(rows []string, summary string) {
	if !s.live {
		s.print(margin + summary + "\n")
		return
	}
	s.erase()
	s.draw(rows)
}

// keep leaves the rows standing and goes on below them.
func (s *screen) keep() { s.rows = nil }

func (s *screen) draw(rows []string) {
	for _, row := range rows {
		s.print(margin + row + "\n")
	}
	s.rows, s.drawn = rows, time.Now()
}

// erase moves the cursor up to the first of the rows and clears what follows. A terminal that has become narrower
// has broken them into more lines.
func (s *screen) erase() {
	if len(s.rows) > 0 && time.Since(s.drawn) > 3*liveFrame {
		time.Sleep(liveFrame) // perhaps it was stopped, which a signal is about to tell
	}
	if s.resumed.Swap(false) {
		s.rows = nil // they are somewhere above
	}
	lines := 0
	for _, row := range s.rows {
		lines++
		if width := terminalWidth(s.out); width > 0 {
			lines += max(0, uniseg.StringWidth(margin+withoutStyle(row))-1) / width
		}
	}
	if lines > 0 {
		s.print(fmt.Sprintf("\x1b[%dA\x1b[J", lines))
	}
	s.rows = nil
}

// print ignores errors: a demo that nobody watches any more may still prove
// something.
func (s *screen) print(text string) { _, _ = io.WriteString(s.out, text) }

var styles = regexp.MustCompile("\x1b\\[[0-9;]*m")

func withoutStyle(text string) string { return styles.ReplaceAllString(text, "") }

// bar is a value of at most most in so many columns.
func bar(value, most int64, width int) string {
	filled := int(min(value, most) * int64(width) / most)
	return strings.Repeat("█", filled) + strings.Repeat("░", width-filled)
}
