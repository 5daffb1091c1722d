package latchkey

import (
	"cmp"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
)

// MaxNameLength is the longest key, in bytes, that a name may map to.
const MaxNameLength = keyspace.MaxLength

// Names for people: the label of a client, and the notes of its holds.

// Bounds of texts for people, in bytes.
const (
	// MaxLabelLength is the longest [Options].Label.
	MaxLabelLength = 128
	// MaxNoteLength is the longest text of a [Note].
	MaxNoteLength = 256
)

// NoLabel is the [Options].Label of a client that publishes no label or notes and shows none of
// other clients. It sends none of the commands that labels take.
const NoLabel = "-"

// defaultLabel is host:pid.
func defaultLabel() string {
	host, _ := os.Hostname()
	pid := ":" + strconv.Itoa(os.Getpid())
	return cmp.Or(cleanText(host, MaxLabelLength-len(pid)), "host") + pid
}

// checkText refuses a text that could not be shown unchanged.
func checkText(what, text string, longest int) error {
	switch {
	case strings.TrimSpace(text) == "":
		return fault.Invalid("%s is empty", what)
	case len(text) > longest:
		return fault.Invalid("%s has %d bytes, more than %d", what, len(text), longest)
	case cleanText(text, longest) != text:
		return fault.Invalid("%s %q has characters that cannot be printed", what, text)
	}
	return nil
}

// cleanText removes unprintable characters from a text and shortens it to longest bytes. Anybody
// may write the texts on the server, and a terminal obeys control characters.
func cleanText(text string, longest int) string {
	text = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, text)
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "")
	}
	return text
}

// connectionName is a label as CLIENT LIST shows it. Only ASCII without blanks is allowed there.
func connectionName(label string) string {
	return "latchkey:" + strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return '_'
		}
		return r
	}, label)
}
