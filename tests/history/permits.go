package history

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// A lock is an object with one permit. A read/write lock has many: a reader takes one of them, a
// writer all. So one model serves locks and semaphores.

// PermitCall is a call of an object with permits that has returned, in nanoseconds.
type PermitCall struct {
	Key        string
	Caller     int
	What       PermitVerb
	N          int
	Token      int64 // the token that was issued, or 0
	Begin, End int64
}

// PermitVerb is the call and its outcome.
type PermitVerb string

// The calls of an object with permits.
const (
	Take    PermitVerb = "take"    // N permits
	Refused PermitVerb = "refused" // N permits: not enough were available
	Give    PermitVerb = "give"    // N permits returned
	Free    PermitVerb = "free"    // N permits are available
	Drain   PermitVerb = "drain"   // all N available permits
)

// permits is the state of the model.
type permits struct {
	free  int
	token int64 // the last token issued
}

// permitModel is the model of objects that begin with that many permits each.
func permitModel(capacity int) porcupine.Model {
	return porcupine.Model{
		Partition: byKey,
		Init:      func() any { return permits{free: capacity} },
		Step: func(state, input, _ any) (bool, any) {
			was, call := state.(permits), input.(PermitCall)
			return was.step(call, capacity)
		},
		DescribeOperation: func(input, _ any) string {
			call := input.(PermitCall)
			return fmt.Sprintf("%s %d (token %d)", call.What, call.N, call.Token)
		},
		DescribeState: func(state any) string { return fmt.Sprintf("%+v", state) },
	}
}

// step reports whether the call can have that outcome now, and returns the state after it.
func (p permits) step(call PermitCall, capacity int) (possible bool, after permits) {
	switch call.What {
	case Take:
		grows := call.Token == 0 || call.Token > p.token
		return call.N <= p.free && grows, permits{p.free - call.N, max(p.token, call.Token)}
	case Refused:
		return call.N > p.free, p
	case Give:
		return p.free+call.N <= capacity, permits{p.free + call.N, p.token}
	case Free:
		return call.N == p.free, p
	case Drain:
		return call.N == p.free, permits{0, p.token}
	}
	return false, p
}

// byKey separates the objects, which are independent.
func byKey(history []porcupine.Operation) (parts [][]porcupine.Operation) {
	index := map[string]int{}
	for _, op := range history {
		key := op.Input.(PermitCall).Key
		i, known := index[key]
		if !known {
			i = len(parts)
			index[key] = i
			parts = append(parts, nil)
		}
		parts[i] = append(parts[i], op)
	}
	return parts
}

func permitOperations(calls []PermitCall) []porcupine.Operation {
	ops := make([]porcupine.Operation, len(calls))
	for i, c := range calls {
		ops[i] = porcupine.Operation{ClientId: c.Caller, Input: c, Call: c.Begin, Return: c.End}
	}
	return ops
}
