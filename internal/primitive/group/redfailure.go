package group

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// A round of a RedLock that gets no majority ends with
//
//	too many failed permanently for a majority to be possible      the first of their errors, at once
//	too many failed, were silent or were lost for a majority    ErrUnavailable
//	now, or the majority came too late
//	otherwise: others hold the missing members                  ErrNotAcquired
//
// The text of the error has the reason of each member. The error does not match what is true of one
// member only: for example, that one of five is held, or that one client is closed.

// Failure is why a member was not acquired.
type Failure struct {
	Index int
	Err   error
	final bool // waiting cannot help
	busy  bool // another owner has it
}

func failureOf(r memberResult) Failure {
	final := isFinalForMember(r.err)
	return Failure{r.index, r.err, final, !final && errors.Is(r.err, fault.ErrNotAcquired)}
}

// open reports whether pending members can still change the outcome of the round: to a majority, to
// the certainty that there will never be one, or from one error to the other.
func (t *Tries) open(need int) bool {
	spare := len(t.Members) - need
	final, busy := t.count()
	down := len(t.Failures) - busy // including the final ones
	switch {
	case len(t.Failures) <= spare:
		return true
	case final > 0 && final <= spare && final+len(t.pending) > spare:
		return true
	}
	return down <= spare && down+len(t.pending) > spare
}

// count returns how many failures are final, and how many are due to other holders.
func (t *Tries) count() (final, busy int) {
	for _, f := range t.Failures {
		if f.final {
			final++
		}
		if f.busy {
			busy++
		}
	}
	return final, busy
}

// NoMajority returns the error of a round in which too few members were acquired, or too late, and
// whether another round may succeed.
func (t *Tries) NoMajority(held, need int, late bool) (again bool, _ error) {
	slices.SortFunc(t.Failures, func(a, b Failure) int { return cmp.Compare(a.Index, b.Index) })
	n := len(t.Members)
	final, busy := t.count()
	if final > n-need {
		return false, t.forGood()
	}
	text := fmt.Sprintf("%d of %d members acquired, %d needed", held, n, need)
	e := &noMajorityError{sentinel: fault.ErrNotAcquired, text: text}
	if late {
		e.text += ", but too late: too little of the lease is left"
	}
	if late || n-held-busy > n-need {
		e.sentinel = fault.ErrUnavailable
	}
	for _, f := range t.Failures {
		e.add(f, t.member(f.Index), t.Timeout)
	}
	for _, index := range slices.Sorted(maps.Keys(t.pending)) {
		e.reasons = append(e.reasons, fmt.Errorf("%s: no answer so far", t.member(index)))
		e.unknown, e.pending = true, true
	}
	return true, e
}

// incomplete reports whether a round ended before all members had their time.
func incomplete(err error) bool {
	var e *noMajorityError
	return errors.As(err, &e) && e.pending
}

// member returns the name of a member in errors.
func (t *Tries) member(index int) string {
	return fmt.Sprintf("member %d %q", index+1, t.Members[index].Name())
}

// forGood returns the error of members that failed permanently: that of the first, with the text of
// the others.
func (t *Tries) forGood() error {
	var all []error
	for _, f := range t.Failures {
		switch err := fmt.Errorf("%s: %w", t.member(f.Index), memberReason(f.Err)); {
		case !f.final:
		case all == nil:
			all = append(all, err)
		default:
			all = append(all, errors.New(err.Error()))
		}
	}
	return errors.Join(all...)
}

// noMajorityError is the error of a round.
type noMajorityError struct {
	sentinel error // ErrNotAcquired or ErrUnavailable
	unknown  bool  // a member received a request and has not answered
	pending  bool  // a member had time left to answer
	text     string
	reasons  []error
}

func (e *noMajorityError) Error() string {
	var text strings.Builder
	text.WriteString(e.sentinel.Error() + ": " + e.text)
	for _, reason := range e.reasons {
		text.WriteString("; " + reason.Error())
	}
	return text.String()
}

// Unwrap leaves out ErrUnknownOutcome where others hold the lock, even if other servers are silent.
func (e *noMajorityError) Unwrap() []error {
	if e.unknown && e.sentinel == fault.ErrUnavailable { //nolint:errorlint // which of the two it is
		return append([]error{e.sentinel, fault.ErrUnknownOutcome}, e.reasons...)
	}
	return append([]error{e.sentinel}, e.reasons...)
}

// add adds the reason of a member. For a member that was not reached, it includes the underlying
// error, such as one of the network.
func (e *noMajorityError) add(f Failure, member string, timeout time.Duration) {
	reason := memberReason(f.Err)
	if reason == nil {
		reason = fmt.Errorf("no answer within %s", fault.DurationText(timeout))
	}
	reason = fmt.Errorf("%s: %w", member, reason)
	down := !f.final && !f.busy
	matches := func(sentinel error) bool { return errors.Is(reason, sentinel) }
	if !down || fault.IsContextEnd(reason) || matches(fault.ErrNotAcquired) || matches(fault.ErrUnavailable) {
		reason = errors.New(reason.Error())
	}
	e.unknown = e.unknown || down && errors.Is(f.Err, fault.ErrUnknownOutcome)
	e.reasons = append(e.reasons, reason)
}

// memberReason returns the error of a member without its operation, ErrUnavailable, and the end of
// its time; nil if nothing remains.
func memberReason(err error) error {
	var op *fault.OpError
	if errors.As(err, &op) && err == error(op) { //nolint:errorlint // the outermost
		return withoutSentinels(errors.Join(op.Causes...))
	}
	return withoutSentinels(err)
}

func withoutSentinels(err error) error {
	switch e := err.(type) { //nolint:errorlint // each error in the tree is looked at
	case *fault.EndedContextError:
		return nil
	case *fault.KindError, *fault.OpError, *noMajorityError:
		return err
	case interface{ Unwrap() []error }:
		var rest []error
		for _, each := range e.Unwrap() {
			rest = append(rest, withoutSentinels(each))
		}
		return errors.Join(rest...)
	}
	for _, leaf := range []error{fault.ErrUnavailable, fault.ErrUnknownOutcome, outcome.ErrSilent} {
		if err == leaf { //nolint:errorlint // the leaf, not what contains it
			return nil
		}
	}
	return err
}
