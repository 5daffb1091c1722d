package transport

import (
	"errors"
	"fmt"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/base/fault"
)

// tooFewError is an ErrNotReplicated with what the server said.
type tooFewError struct {
	confirmed int64
	wanted    int
	cause     error                // of WAIT, or nil
	reply     rueidis.RedisMessage // of the script
}

func (e *tooFewError) Error() string {
	if e.cause != nil {
		return fault.ErrNotReplicated.Error() + ": " + e.cause.Error()
	}
	return fmt.Sprintf("%v: %d of %d confirmed in time", fault.ErrNotReplicated, e.confirmed, e.wanted)
}

// Unwrap lets the caller match ErrNotReplicated and the cause.
func (e *tooFewError) Unwrap() []error {
	if e.cause == nil {
		return []error{fault.ErrNotReplicated}
	}
	return []error{fault.ErrNotReplicated, e.cause}
}

// Unconfirmed returns the reply of a script that was executed but that too few replicas have
// confirmed. found is false for any other error.
func Unconfirmed(err error) (reply rueidis.RedisMessage, found bool) {
	var few *tooFewError
	if !errors.As(err, &few) {
		return reply, false
	}
	return few.reply, true
}
