// Package history checks what the users of a lock, a semaphore or a latch have seen: whether a
// correct object could have executed their calls one after another, each at some point between its
// beginning and its end. The search is that of porcupine.
//
// The users may be processes in any language. They take their times from one clock, that of the
// machine.
package history

import (
	"fmt"
	"os"
	"strings"
)

// Stay is a time that a user spent inside: from the return of the acquisition to the call
// of the release, in nanoseconds. The server's view of it is longer.
type Stay struct {
	Key      string
	From, To int64
	Permits  int   // of the capacity of the object
	Token    int64 // fencing token, 0 for a lock without tokens
}

// Append adds the stay to text, as a line that [Read] understands.
func (s Stay) Append(text []byte) []byte {
	return fmt.Appendln(text, s.From, s.To, s.Permits, s.Token, s.Key)
}

// Read returns the stays in files. An incomplete last line, left by a killed process, does not
// count.
func Read(files ...string) (stays []Stay, err error) {
	for _, name := range files {
		if stays, err = read(name, stays); err != nil {
			return nil, err
		}
	}
	return stays, nil
}

func read(name string, stays []Stay) ([]Stay, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		if !strings.HasSuffix(line, "\n") {
			break
		}
		var s Stay
		if _, err := fmt.Sscan(line, &s.From, &s.To, &s.Permits, &s.Token, &s.Key); err != nil {
			return nil, fmt.Errorf("%s: %q: %w", name, strings.TrimSpace(line), err)
		}
		stays = append(stays, s)
	}
	return stays, nil
}

// calls returns what stays prove: permits were held from one time to another.
func calls(stays []Stay) []PermitCall {
	all := make([]PermitCall, 0, 2*len(stays))
	for i, s := range stays {
		all = append(all,
			PermitCall{Key: s.Key, Caller: i, What: Take, N: s.Permits, Token: s.Token, Begin: s.From, End: s.From},
			PermitCall{Key: s.Key, Caller: i, What: Give, N: s.Permits, Begin: s.To, End: s.To})
	}
	return all
}
