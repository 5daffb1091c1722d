package main

import "strings"

// helpWidth is how long a line of a description may be: the command-line library puts three blanks in
// front of it.
const helpWidth = 77

// wrapped breaks the lines of a description anew. A paragraph that is indented stays as it is.
func wrapped(text string) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		if !strings.HasPrefix(p, " ") {
			paragraphs[i] = paragraph(p)
		}
	}
	return strings.Join(paragraphs, "\n\n")
}

func paragraph(text string) string {
	var b strings.Builder
	width := 0
	for _, word := range strings.Fields(text) {
		n := len([]rune(word))
		switch {
		case width == 0:
		case width+1+n > helpWidth:
			b.WriteByte('\n')
			width = 0
		default:
			b.WriteByte(' ')
			width++
		}
		b.WriteString(word)
		width += n
	}
	return b.String()
}
