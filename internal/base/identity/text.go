package identity

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/latchkey-go/latchkey/internal/base/fault"
)

// Bounds of texts for people, in bytes.
const (
	MaxLabel = 128 // of the label of a client
	MaxNote  = 256 // of the note of a hold
)

// CheckText refuses a text that could not be shown unchanged.
func CheckText(what, text string, longest int) error {
	switch {
	case strings.TrimSpace(text) == "":
		return fault.Invalid("%s is empty", what)
	case len(text) > longest:
		return fault.Invalid("%s has %d bytes, more than %d", what, len(text), longest)
	case CleanText(text, longest) != text:
		return fault.Invalid("%s %q has characters that cannot be printed", what, text)
	}
	return nil
}

// CleanText removes unprintable characters from a text and shortens it to longest bytes. Anybody
// may write the texts on the server, and a terminal obeys control characters.
func CleanText(text string, longest int) string {
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
