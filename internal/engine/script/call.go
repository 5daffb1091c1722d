// Package script has the commands of the library, which are Lua scripts, and reads their replies
// and errors.
package script

import (
	"slices"
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// Call is a command with its keys and arguments.
type Call = transport.Call

// NewCall returns a call of a command.
func NewCall(cmd transport.Command, keys []string, args ...string) Call {
	return Call{Cmd: cmd, Keys: keys, Args: args}
}

// Keeping returns the call of a release whose last argument is for how long the lock stays taken,
// with that time.
func Keeping(c Call, rest time.Duration) Call {
	c.Args = slices.Clone(c.Args)
	c.Args[len(c.Args)-1] = MillisText(rest)
	return c
}

// pageSize is how many elements of a list one request reads, so that a long list does not block the
// server.
const pageSize = 500

// Pages reads a list page by page. It gives read the positions of the first and the last element of
// a page, as arguments of a script. read returns the size of the whole list.
func Pages(read func(positions []string) (size int64, err error)) error {
	for from := 0; ; from += pageSize {
		size, err := read([]string{strconv.Itoa(from), strconv.Itoa(from + pageSize - 1)})
		if err != nil || int64(from+pageSize) >= size {
			return err
		}
	}
}
