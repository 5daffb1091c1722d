//go:build ignore

// svg.go writes what a terminal showed as an SVG file: go run svg.go FILE.svg COLUMNS FRAME.MS…
//
// A frame is a file that tmux capture-pane -e -p writes. Its name ends with a dot and the time of
// the capture, in milliseconds. One frame makes a still. Several frames make an animation, which
// stays at the last frame for a while and then repeats. A reader who prefers reduced motion sees
// only the last frame. The colors are those of a dark terminal, which is readable on both light and
// dark pages.
package main

import (
	"cmp"
	"fmt"
	"html"
	"log"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	cellWidth, cellHeight = 8.4, 18.0
	padding               = 14.0
	lastStays             = 6000 // ms
)

type frame struct {
	at    int // ms
	lines []string
}

// shown is a line that a row shows for some time. With untilLast, to has no meaning: the line stays
// until the end.
type shown struct {
	row       int
	text      string
	from, to  int
	untilLast bool
}

func main() {
	log.SetFlags(0)
	columns, err := strconv.Atoi(os.Args[2])
	check(err)
	var frames []frame
	for _, name := range os.Args[3:] {
		text, err := os.ReadFile(name)
		check(err)
		at, err := strconv.Atoi(name[strings.LastIndex(name, ".")+1:])
		check(err)
		frames = append(frames, frame{at, carried(strings.Split(strings.TrimRight(string(text), "\n"), "\n"))})
	}
	slices.SortFunc(frames, func(a, b frame) int { return cmp.Compare(a.at, b.at) })
	first := frames[0].at
	for i := range frames {
		frames[i].at -= first
	}
	check(os.WriteFile(os.Args[1], []byte(draw(frames, columns)), 0o644))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func draw(frames []frame, columns int) string {
	rows := 0
	for _, f := range frames {
		rows = max(rows, len(f.lines))
	}
	total := frames[len(frames)-1].at + lastStays
	var body, styles strings.Builder
	intervals := map[[2]int]string{}
	for _, s := range intervalsOf(frames, rows) {
		class := ""
		if s.from > 0 || !s.untilLast {
			interval := [2]int{s.from, s.to}
			if intervals[interval] == "" {
				intervals[interval] = fmt.Sprintf("t%d", len(intervals))
				styles.WriteString(keyframes(intervals[interval], s, total))
			}
			class = intervals[interval]
			if !s.untilLast {
				class += " n"
			}
		}
		body.WriteString(line(s, class, columns))
	}
	width, height := float64(columns)*cellWidth+2*padding, float64(rows)*cellHeight+2*padding
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f">
<style>
text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#e6edf3;white-space:pre}
.b{font-weight:bold;fill:#fff}.d{fill:#8b949e}.g{fill:#56d364}.r{fill:#ff7b72}.v{fill:#161b22}.n{visibility:hidden}
@media(prefers-reduced-motion:no-preference){
%s}
</style>
<rect width="100%%" height="100%%" rx="8" fill="#161b22" stroke="#484f58"/>
%s</svg>
`, width, height, width, height, styles.String(), body.String())
}

// keyframes returns the style that makes a line visible only in its interval.
func keyframes(name string, s shown, total int) string {
	percent := func(at int) string { return strconv.FormatFloat(100*float64(at)/float64(total), 'f', 2, 64) + "%" }
	text := fmt.Sprintf("%s{visibility:visible}", percent(s.from))
	if s.from > 0 {
		text = "0%{visibility:hidden}" + text
	}
	if !s.untilLast {
		text += percent(s.to) + "{visibility:hidden}"
	}
	return fmt.Sprintf(".%s{animation:%s %.1fs step-end infinite}@keyframes %s{%s}\n", name, name, float64(total)/1000, name, text)
}

// carried begins each line with the styles in which the previous line ended, as a terminal does.
func carried(lines []string) []string {
	before := ""
	for i, line := range lines {
		lines[i] = before + strings.TrimRight(line, " ")
		for _, found := range escape.FindAllString(line, -1) {
			if strings.HasPrefix(found, "\x1b[0") {
				before = "" // it begins with a reset
			}
			before += found
		}
		if escape.ReplaceAllString(lines[i], "") == "" && !strings.Contains(lines[i], "[7m") {
			lines[i] = ""
		}
	}
	return lines
}

// intervalsOf joins the frames in a row that show the same line.
func intervalsOf(frames []frame, rows int) (all []shown) {
	for row := range rows {
		var last shown
		end := func() {
			if last.text != "" {
				all = append(all, last)
			}
		}
		for _, f := range frames {
			text := ""
			if row < len(f.lines) {
				text = strings.TrimRight(f.lines[row], " ")
			}
			if text != last.text {
				last.to = f.at
				end()
				last = shown{row: row, text: text, from: f.at}
			}
		}
		last.untilLast = true
		end()
	}
	return all
}

var escape = regexp.MustCompile("\x1b\\[([0-9;]*)m|\x1b[()].|[\x0e\x0f]")

// line returns the text of a row with its styles. Each piece is as wide as its cells, whatever the
// font is. A row that ends in reverse video is reverse up to the last column: tmux omits the
// blanks.
func line(s shown, class string, columns int) string {
	var out strings.Builder
	y := padding + float64(s.row)*cellHeight
	open := "<g>"
	if class != "" {
		open = fmt.Sprintf(`<g class="%s">`, class)
	}
	out.WriteString(open)
	column, style, reverse, underlined := 0, "", false, false
	write := func(text string) {
		n := utf8.RuneCountInString(text)
		x, width := padding+float64(column)*cellWidth, float64(n)*cellWidth
		column += n
		if n == 0 || !reverse && !underlined && strings.TrimSpace(text) == "" {
			return
		}
		as := style
		if underlined {
			fmt.Fprintf(&out, `<rect x="%.1f" y="%.1f" width="%.1f" height="1" fill="#e6edf3"/>`, x, y+cellHeight-2, width)
		}
		if reverse {
			fmt.Fprintf(&out, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.0f" fill="#c9d1d9"/>`, x, y, width, cellHeight)
			as = "v"
		}
		if as != "" {
			as = fmt.Sprintf(` class="%s"`, as)
		}
		fmt.Fprintf(&out, `<text x="%.1f" y="%.1f" textLength="%.1f"%s xml:space="preserve">%s</text>`, x, y+13, width, as, html.EscapeString(text))
	}
	at := 0
	for _, found := range escape.FindAllStringSubmatchIndex(s.text, -1) {
		write(s.text[at:found[0]])
		at = found[1]
		if found[2] < 0 {
			continue
		}
		for _, code := range strings.Split(s.text[found[2]:found[3]], ";") {
			switch code {
			case "", "0":
				style, reverse, underlined = "", false, false
			case "1":
				style = "b"
			case "2":
				style = "d"
			case "4":
				underlined = true
			case "24":
				underlined = false
			case "7":
				reverse = true
			case "27":
				reverse = false
			case "31":
				style = "r"
			case "32":
				style = "g"
			case "39":
				style = strings.Trim(style, "rg") // the color
			case "22":
				style = strings.Trim(style, "bd")
			}
		}
	}
	rest := s.text[at:]
	if reverse {
		rest += strings.Repeat(" ", max(0, columns-column-utf8.RuneCountInString(rest)))
	}
	write(rest)
	return out.String() + "</g>\n"
}
