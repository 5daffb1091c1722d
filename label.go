package latchkey

import (
	"cmp"
	"os"
	"strconv"
	"strings"

	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
)

// MaxNameLength is the longest key, in bytes, that a name may map to.
const MaxNameLength = keyspace.MaxLength

// Names for people: the label of a client, and the notes of its holds.

// Bounds of texts for people, in bytes.
const (
	// MaxLabelLength is the longest [Options].Label.
	MaxLabelLength = identity.MaxLabel
	// MaxNoteLength is the longest text of a [Note].
	MaxNoteLength = identity.MaxNote
)

// NoLabel is the [Options].Label of a client that publishes no label or notes and shows none of
// other clients. It sends none of the commands that labels take.
const NoLabel = "-"

// defaultLabel is host:pid.
func defaultLabel() string {
	host, _ := os.Hostname()
	pid := ":" + strconv.Itoa(os.Getpid())
	return cmp.Or(identity.CleanText(host, MaxLabelLength-len(pid)), "host") + pid
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
