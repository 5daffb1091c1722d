package main

import (
	"io"
	"regexp"
	"strings"

	"github.com/rivo/uniseg"
)

// beginning matches the title of a row, or a time, before the text of a line.
var beginning = regexp.MustCompile(`^(?:  .{8} |[0-9:.]+  )?`)

// writeLines writes lines. On a terminal it wraps a line that is too wide between words, and
// indents the rest to the start of the text.
func writeLines(out io.Writer, text string) error {
	_, err := io.WriteString(out, linesIn(text, terminalWidth(out)))
	return err
}

// linesIn wraps lines to width columns. With width 0 it returns the text unchanged.
func linesIn(text string, width int) string {
	var all strings.Builder
	for line := range strings.Lines(text) {
		if width > 0 && uniseg.StringWidth(line) > width {
			title := beginning.FindString(line)
			line = strings.Join(filled(title, strings.Fields(line[len(title):]), width), "\n") + "\n"
		}
		all.WriteString(line)
	}
	return all.String()
}
