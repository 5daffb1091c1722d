package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

const (
	liveFrame  = 100 * time.Millisecond
	plainFrame = 2 * time.Second
	barWidth   = 24
)

// screen shows progress: redrawn in place on a terminal, as a line now and then
// elsewhere, so that the log of a build stays readable. One goroutine uses it.
type screen struct {
	out  io.Writer
	live bool
	rows []string // on the screen now, below everything that was said
}

func newScreen(out io.Writer) *screen {
	return &screen{out: out, live: isTerminal(out)}
}

func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// period is how often it makes sense to call show.
func (s *screen) period() time.Duration {
	if s.live {
		return liveFrame
	}
	return plainFrame
}

// say writes what stays, above the rows that are being redrawn.
func (s *screen) say(format string, args ...any) {
	rows := s.rows
	s.erase()
	s.print(fmt.Sprintf(format, args...) + "\n")
	s.draw(rows)
}

// show replaces the rows; where nothing can be redrawn it writes the summary.
func (s *screen) show(rows []string, summary string) {
	if !s.live {
		s.print("   " + summary + "\n")
		return
	}
	s.erase()
	s.draw(rows)
}

// keep leaves the rows standing and goes on below them.
func (s *screen) keep() { s.rows = nil }

func (s *screen) draw(rows []string) {
	for _, row := range rows {
		s.print("   " + row + "\n")
	}
	s.rows = rows
}

// erase moves the cursor up to the first of the rows and clears what follows.
func (s *screen) erase() {
	if len(s.rows) > 0 {
		s.print(fmt.Sprintf("\x1b[%dA\x1b[J", len(s.rows)))
	}
	s.rows = nil
}

// print ignores errors: a demo that nobody watches any more may still prove
// something.
func (s *screen) print(text string) { _, _ = io.WriteString(s.out, text) }

func bar(value, most int64) string {
	filled := int(min(value, most) * barWidth / most)
	return strings.Repeat("█", filled) + strings.Repeat("░", barWidth-filled)
}
