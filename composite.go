package latchkey

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// compositeLock is what MultiLock and RedLock share: members, how many of them have to be
// held, and rounds until they are.
type compositeLock struct {
	kind    Kind
	members []member
	need    int
	invalid error
	// prepare comes before the first round, and returns the settings of an acquisition for
	// each member.
	prepare func(ctx context.Context, r *request, settings []setting) ([]setting, error)
	round   round
	pause   time.Duration  // the longest between two rounds
	line    *compositeLine // of this program, or nil
}

// round is one attempt to acquire as many members as are needed. After an error it holds nothing
// but what is being released; again tells whether another round may go better. q is the line in
// front of which it is made, or nil.
type round func(ctx context.Context, r *request, settings []setting, q *waitQueue) (h *Hold, again bool, err error)

// Name returns the kind and the names of the members, such as "multi(a, b)".
func (l *compositeLock) Name() string {
	names := make([]string, len(l.members))
	for i, m := range l.members {
		names[i] = m.Name()
	}
	return string(l.kind) + "(" + strings.Join(names, ", ") + ")"
}

func (l *compositeLock) self() member              { return l }
func (l *compositeLock) order() (key, kind string) { return l.Name(), "" }

func (l *compositeLock) noun() string {
	if l.kind == KindRed {
		return "the RedLock"
	}
	return "the MultiLock"
}

// fault is that of the members, or that there are none: nobody has made this lock.
func (l *compositeLock) fault() error {
	if l.invalid == nil && len(l.members) == 0 {
		return errNoMembers
	}
	return l.invalid
}

func (l *compositeLock) primitives() (all []*primitive) {
	for _, m := range l.members {
		all = append(all, m.primitives()...)
	}
	return all
}

var errNoMembers = invalid("there are no members")

// acquire checks the request, bounds it and has it done.
func (l *compositeLock) acquire(ctx context.Context, verb string, waits bool, settings []setting) (*Hold, error) {
	r, err := newRequest(DefaultLease, waits, settings)
	switch {
	case l.fault() != nil:
		err = l.fault()
	case err == nil && r.by != nil:
		err = invalid("By does not apply to several locks: owners of different clients have nothing in common")
	case err == nil && r.atLeast > 0:
		err = errNoAtLeast
	}
	if err != nil {
		return nil, fail(verb, l.Name(), err)
	}
	began := time.Now()
	r.parent = l.parentOf(ctx)
	ctx, cancel := r.bound(ctx)
	defer cancel()
	h, err := l.run(ctx, &r, forMembers(settings))
	if err != nil {
		err = fail(verb, l.Name(), explain(err)...)
		l.observeGaveUp(r.parent, began, err)
		return nil, err
	}
	return h, nil
}

// run prepares the rounds and goes them, or waits for its turn to.
func (l *compositeLock) run(ctx context.Context, r *request, settings []setting) (*Hold, error) {
	settings, err := l.prepare(ctx, r, settings)
	switch {
	case err != nil:
		return nil, err
	case r.waits:
		return l.waitInLine(ctx, r, settings)
	}
	return l.rounds(ctx, r, settings, nil)
}

// rounds goes round until one gets the lock, or waiting does not help, or the time is over. In front
// of a line a signal ends the pause between two.
func (l *compositeLock) rounds(ctx context.Context, r *request, settings []setting, q *waitQueue) (*Hold, error) {
	round, hint := l.round, (<-chan struct{})(nil)
	if q != nil {
		round, hint = l.roundInFront, q.signals
	}
	var before error // what the round before met
	for {
		began := time.Now()
		h, again, err := round(ctx, r, settings, q)
		switch {
		case err == nil:
			return h, nil
		case !again || !r.waits || ctx.Err() != nil:
			return nil, roundError(ctx, began, err, before)
		}
		before = err
		if transport.Delay(ctx, nil, hint, transport.Jitter(l.pause)) != nil {
			return nil, withContextEnd(ctx, err)
		}
	}
}

// forMembers are the settings for each member: the wait is the whole's.
func forMembers(settings []setting) []setting {
	return slices.DeleteFunc(slices.Clone(settings), func(s setting) bool { return s.kind == settingWait })
}

// isFinalForMember reports whether what came of a member is final: waiting cannot help.
func isFinalForMember(err error) bool {
	return !transport.IsContextEnd(err) && (isFinal(err) || errors.Is(err, transport.ErrClientClosed))
}

// roundError is the error of a step that began then, if the time of the call ends in it: what
// the step before met, unless this one has heard more, or had its time to.
func roundError(ctx context.Context, began time.Time, err, before error) error {
	if ctx.Err() != nil && before != nil && time.Since(began) < cutOff && (memberReason(err) == nil || incomplete(err)) {
		return withContextEnd(ctx, before)
	}
	return withContextEnd(ctx, err)
}
