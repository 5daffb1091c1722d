// Package group has several locks as one: all of them, or a majority on independent servers.
package group

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
	"github.com/latchkey-go/latchkey/internal/transport/retry"
)

// Lock is several locks that are held together: the members, how many of them must be held,
// and rounds until they are.
type Lock struct {
	kind    keyspace.Kind
	Members []Member
	given   []Member // as the program gave them, for the name if they are invalid
	need    int
	invalid error
	Round   round
	Pause   time.Duration // the longest pause between two rounds
	// inLine acquires for a call that waits behind others of this program, or is nil if there is no
	// line.
	inLine func(
		ctx context.Context, r *request.Request, settings []request.Setting, mark *line.Mark,
	) (*hold.Handle, error)
}

// round is one attempt to acquire as many members as are needed. After an error it holds nothing
// except members that are being released; again reports whether another round may succeed.
type round func(
	ctx context.Context, r *request.Request, settings []request.Setting,
) (h *hold.Handle, again bool, err error)

// Name returns the kind and the names of the members, such as "multi(a, b)".
func (l *Lock) Name() string {
	members := l.Members
	if l.invalid != nil {
		members = l.given
	}
	names := make([]string, len(members))
	for i, m := range members {
		names[i] = "nil"
		if m != nil {
			names[i] = m.Name()
		}
	}
	return string(l.kind) + "(" + strings.Join(names, ", ") + ")"
}

// Order implements [Member].
func (l *Lock) Order() (key string, kind keyspace.Kind) { return l.Name(), l.kind }

// Fault is the error of the members, or errNoMembers for a lock that no constructor made.
func (l *Lock) Fault() error {
	if l.invalid == nil && len(l.Members) == 0 {
		return errNoMembers
	}
	return l.invalid
}

// Locks implements [Member].
func (l *Lock) Locks() (all []*ownership.Lock) {
	for _, m := range l.Members {
		all = append(all, m.Locks()...)
	}
	return all
}

// IsShared reports whether several owners may hold the lock at once, even if one of them holds all
// members: each then needs only members that are shared.
func (l *Lock) IsShared() bool {
	shared := 0
	for _, m := range l.Members {
		if m.IsShared() {
			shared++
		}
	}
	return shared >= l.need
}

var errNoMembers = fault.Invalid("there are no members")

// Acquire checks the request, bounds it in time, and runs it.
func (l *Lock) Acquire(
	ctx context.Context, verb string, waits bool, settings []request.Setting,
) (*hold.Handle, error) {
	r, err := request.New(lease.Default, l.maxHold(), waits, settings)
	if err == nil && r.OfClient > 0 {
		// All members have the same limit, from when the whole is held. Clipped, because others
		// have the slice too.
		settings = append(slices.Clip(settings), request.Setting{Kind: request.MaxHold, D: r.MaxHold})
	}
	switch {
	case l.Fault() != nil:
		err = l.Fault()
	case err == nil && !r.As.IsZero():
		err = fault.Invalid("As does not apply to several locks: owners of different clients have nothing in common")
	case err == nil && r.AtLeast > 0:
		err = acquire.ErrNoAtLeast
	}
	if err != nil {
		return nil, fault.Op(verb, l.Name(), err)
	}
	began := time.Now()
	r.Parent = l.parentOf(ctx)
	if err := outcome.EndedBefore(ctx); err != nil {
		err = fault.Op(verb, l.Name(), err)
		l.observeGaveUp(r.Parent, began, err)
		return nil, err
	}
	ctx, cancel := r.Bound(ctx)
	defer cancel()
	h, err := l.Run(ctx, &r, forMembers(settings))
	if err != nil {
		err = fault.Op(verb, l.Name(), script.Explain(err)...)
		l.observeGaveUp(r.Parent, began, err)
		return nil, err
	}
	return h, nil
}

// maxHold returns the shortest Options.MaxHold of the clients, or 0.
func (l *Lock) maxHold() (shortest time.Duration) {
	for _, p := range l.Locks() {
		if d := p.Client.Config.MaxHold; d > 0 && (shortest == 0 || d < shortest) {
			shortest = d
		}
	}
	return shortest
}

// Run makes rounds, in line if there is one and the call waits. It sends nothing if the time is
// over.
func (l *Lock) Run(ctx context.Context, r *request.Request, settings []request.Setting) (*hold.Handle, error) {
	if ctx.Err() != nil {
		return nil, fault.ContextError(ctx)
	}
	if l.kind == keyspace.KindMulti && r.Confines() { // the client renews members until the last one is acquired
		settings = append(settings, request.Setting{Kind: request.UntilComplete})
	}
	var mark line.Mark
	defer mark.End()
	if r.Waits && l.inLine != nil {
		return l.inLine(ctx, r, settings, &mark)
	}
	return l.rounds(ctx, r, settings, nil, &mark)
}

// rounds makes rounds until one gets the lock, waiting cannot help, or the time is over. The others
// in line, if there is one, learn why the front waits. mark counts a call that waits from the first
// pause on.
func (l *Lock) rounds(
	ctx context.Context, r *request.Request, settings []request.Setting, front *line.FIFO, mark *line.Mark,
) (*hold.Handle, error) {
	var before error // the error of the previous round
	if front != nil {
		before = front.LastError()
	}
	for {
		began := time.Now()
		if front != nil {
			front.AttemptBegins()
		}
		h, again, err := l.Round(ctx, r, settings)
		if err == nil {
			return h, nil
		}
		if front != nil && ctx.Err() == nil {
			front.AttemptAnswered(err)
		}
		err = roundError(ctx, began, err, before)
		if !again || !r.Waits || ctx.Err() != nil {
			return nil, err
		}
		before = err
		l.beginWait(mark)
		if retry.Rest(ctx, nil, retry.Jitter(l.Pause)) != nil {
			return nil, line.WithContextEnd(ctx, err)
		}
	}
}

// beginWait counts a call that waits for the lock, in the client of the first member.
func (l *Lock) beginWait(mark *line.Mark) {
	mark.Begin(l.Locks()[0].Client.Waiting.Counts, l.kind)
}

// forMembers returns the settings for each member. Wait is left out because it applies to the
// whole.
func forMembers(settings []request.Setting) []request.Setting {
	return slices.DeleteFunc(slices.Clone(settings), func(s request.Setting) bool { return s.Kind == request.Wait })
}

// isFinalForMember reports whether the error of a member is final: waiting cannot help.
func isFinalForMember(err error) bool {
	return !fault.IsContextEnd(err) && (script.IsFinal(err) || errors.Is(err, outcome.ErrClientClosed))
}

// roundError is the error of a step that began at began. If the time of the call ended during the
// step, it is the error of the previous step, unless this step learned more or lasted at least
// line.CutOff.
func roundError(ctx context.Context, began time.Time, err, before error) error {
	learned := memberReason(err) != nil && !incomplete(err)
	if ctx.Err() != nil && before != nil && time.Since(began) < line.CutOff && !learned {
		return line.WithContextEnd(ctx, before)
	}
	return line.WithContextEnd(ctx, err)
}
