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
	// mostText is the maximum width of the demo's text: longer lines are hard to read.
	mostText = 100
	margin   = "   "
)

// screen shows progress. On a terminal it redraws rows in place; elsewhere it writes
// a line now and then, so that the log of a build stays readable. Only continued may
// be called from other goroutines.
type screen struct {
	out     io.Writer
	live    bool
	colors  bool
	rows    []string // on the screen now, below all text of say
	drawn   time.Time
	stopped atomic.Bool // the program was stopped at least once
	resumed atomic.Bool // it was continued since the last draw, so others may have written
}

func newScreen(out io.Writer) *screen {
	live := isTerminal(out)
	return &screen{out: out, live: live, colors: live && os.Getenv("NO_COLOR") == ""}
}

// isTerminal reports whether out is a terminal on which text can be redrawn.
func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(file.Fd()))
}

// terminalWidth returns the current number of columns, or 0 if out is not a terminal.
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

// style is the style of a text on a terminal with colors.
type style string

const (
	bold style = "1"
	good style = "32"
	bad  style = "31"
)

func (s *screen) paint(as style, text string) string {
	if !s.colors {
		return text
	}
	return "\x1b[" + string(as) + "m" + text + "\x1b[0m"
}

// width returns the current width for text: the width of the terminal may change.
func (s *screen) width() int { return textWidth(s.out, mostText) }

// period returns how often to call show.
func (s *screen) period() time.Duration {
	if s.live {
		return liveFrame
	}
	return plainFrame
}

// continued reports to the screen that the program was stopped and continued: it goes on below the
// output of others. It may be called from any goroutine.
func (s *screen) continued() {
	s.stopped.Store(true)
	s.resumed.Store(true)
}

// say writes text that stays, above the rows that are redrawn.
func (s *screen) say(format string, args ...any) {
	s.sayIn("", "", format, args...)
}

// sayIn writes a paragraph in a style, and indents each of its lines.
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

// show replaces the rows. If out is not a terminal, it writes the summary instead.
func (s *screen) show(rows []string, summary string) {
	if !s.live {
		s.print(margin + summary + "\n")
		return
	}
	s.erase()
	s.draw(rows)
}

// keep leaves the rows on the screen and continues below them.
func (s *screen) keep() { s.rows = nil }

func (s *screen) draw(rows []string) {
	for _, row := range rows {
		s.print(margin + row + "\n")
	}
	s.rows, s.drawn = rows, time.Now()
}

// erase moves the cursor up to the first row and clears the screen from there. It takes into
// account that a terminal that has become narrower has wrapped the rows.
func (s *screen) erase() {
	if len(s.rows) > 0 && time.Since(s.drawn) > 3*liveFrame {
		time.Sleep(liveFrame) // the program may have been stopped: wait for the signal that says so
	}
	if s.resumed.Swap(false) {
		s.rows = nil // their place on the screen is unknown
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

// print ignores errors: a demo that nobody watches may still prove something.
func (s *screen) print(text string) { _, _ = io.WriteString(s.out, text) }

var styles = regexp.MustCompile("\x1b\\[[0-9;]*m")

func withoutStyle(text string) string { return styles.ReplaceAllString(text, "") }

// bar draws value, in relation to most, as a bar of width columns.
func bar(value, most int64, width int) string {
	filled := int(min(value, most) * int64(width) / most)
	return strings.Repeat("█", filled) + strings.Repeat("░", width-filled)
}
