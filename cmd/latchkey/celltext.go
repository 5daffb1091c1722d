package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"

	"github.com/latchkey-go/latchkey"
)

// Texts that fit into a column of a table.

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

// brokenInto breaks a text into lines, between words if it can. It cuts nothing but blanks at the
// end of a line.
func brokenInto(width int, text string) (lines []string) {
	line, at := "", 0
	next := func() { lines, line, at = append(lines, strings.TrimRight(line, " ")), "", 0 }
	for _, word := range strings.SplitAfter(text, " ") {
		if at > 0 && at+uniseg.StringWidth(strings.TrimRight(word, " ")) > width {
			next()
		}
		for clusters := uniseg.NewGraphemes(word); clusters.Next(); {
			if at > 0 && at+clusters.Width() > width && clusters.Str() != " " {
				next()
			}
			line, at = line+clusters.Str(), at+clusters.Width()
		}
	}
	next()
	return lines
}

// printable returns a name that a terminal can show: it quotes a name with unprintable characters.
func printable(name string) string {
	if !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(name)
	}
	return name
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
