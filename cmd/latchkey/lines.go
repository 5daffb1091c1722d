package main

import (
	"io"
	"regexp"
	"strings"

	"github.com/rivo/uniseg"
)

// beginning is the title of a row, or a time, before the text of a line.
var beginning = regexp.MustCompile(`^(?:  .{8} |[0-9:.]+  )?`)

// writeLines writes lines. At a terminal one that is too wide goes on in the next, between words, below where its
// text begins.
func writeLines(out io.Writer, text string) error {
	_, err := io.WriteString(out, linesIn(text, terminalWidth(out)))
	return err
}

// linesIn are lines in so many columns, or as they are if that is 0.
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
