package history

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// LatchCall is a call of a latch that has returned without an error, in nanoseconds.
type LatchCall struct {
	Caller     int
	What       LatchVerb
	N          int // the count that is set, or the count left
	Begin, End int64
}

// LatchVerb is what was called.
type LatchVerb string

// The calls of a latch.
const (
	LatchSet       LatchVerb = "set"        // TrySetCount that reported true
	LatchSetBefore LatchVerb = "set before" // TrySetCount that reported false
	LatchCountDown LatchVerb = "count down" // with N left
	LatchCount     LatchVerb = "count"      // Count, which returned N
	LatchAwait     LatchVerb = "await"      // Await, which found it open
)

// latchModel is a latch that is open when the history begins. Its state is the count.
var latchModel = porcupine.Model{
	Init: func() any { return 0 },
	Step: func(state, input, _ any) (bool, any) {
		left, call := state.(int), input.(LatchCall)
		switch call.What {
		case LatchSet:
			return left == 0, call.N
		case LatchSetBefore:
			return left > 0, left
		case LatchCountDown:
			left = max(left-1, 0)
			return call.N == left, left
		case LatchCount:
			return call.N == left, left
		default: // await
			return left == 0, left
		}
	},
	DescribeOperation: func(input, _ any) string {
		call := input.(LatchCall)
		return fmt.Sprintf("%s %d", call.What, call.N)
	},
}

func latchOperations(calls []LatchCall) []porcupine.Operation {
	ops := make([]porcupine.Operation, len(calls))
	for i, c := range calls {
		ops[i] = porcupine.Operation{ClientId: c.Caller, Input: c, Call: c.Begin, Return: c.End}
	}
	return ops
}
