package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rivo/uniseg"
	"github.com/stretchr/testify/assert"
)

// The demo is readable at any width: the terminal breaks no line, and overwrites none. The demo
// ends with the next steps.
func TestDemoOnTerminals(t *testing.T) {
	t.Parallel()
	widths := map[int]bool{60: true, 80: false, 200: true}
	if testing.Short() {
		widths = map[int]bool{80: true}
	}
	for width, colors := range widths {
		t.Run(fmt.Sprintf("%d columns, colors: %v", width, colors), func(t *testing.T) {
			t.Parallel()
			noColor := map[bool]string{false: "export NO_COLOR=1", true: "unset NO_COLOR"}[colors]
			p := onScreen(t, width, "", noColor+`; "$LATCHKEY" demo --for 1s --lease 1s`)
			p.await("code 0")
			raw := p.tmux("capture-pane", "-e", "-p", "-S", "-")
			assert.Equal(t, colors, strings.Contains(raw, "\x1b[32m"), "green")
			lines := strings.Split(withoutStyle(raw), "\n")
			text := strings.Join(lines, "\n")
			for _, line := range lines {
				assert.LessOrEqual(t, uniseg.StringWidth(line), min(width, mostText), line)
			}
			for _, want := range []string{"\nPROOF: counter ", "\nPROOF: 5 of 5 workers", "\n  go get github.com/latchkey-go/latchkey  lock in Go\ncode 0\n",
				"\n   worker 1  ", "   worker 5  "} {
				assert.Contains(t, text, want)
			}
			assert.Equal(t, 2, strings.Count(text, "\n   worker 1  "), "rows were redrawn in place")
			if width >= 80 {
				assert.Contains(t, text, "\nPROOF: 5 of 5 workers passed the latch, 0 of them too early\n")
			}
		})
	}
}

// A change of the terminal's width does not spoil later drawing.
func TestDemoOnATerminalThatChanges(t *testing.T) {
	long(t)
	t.Parallel()
	p := onScreen(t, 120, "", `"$LATCHKEY" demo --for 3s --lease 1s`)
	for _, width := range []int{60, 100, 70} {
		p.await("worker 1", "turns")
		p.tmux("resize-window", "-x", fmt.Sprint(width), "-y", "24")
	}
	p.await("code 0")
	text := strings.Join(p.lines(), "\n")
	assert.Contains(t, text, "\n  go get github.com/latchkey-go/latchkey  lock in Go\ncode 0\n")
	for line := range strings.Lines(text) {
		assert.LessOrEqual(t, uniseg.StringWidth(strings.TrimSuffix(line, "\n")), 70, line)
	}
}
