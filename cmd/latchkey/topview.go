package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gdamore/tcell/v2"

	"github.com/latchkey-go/latchkey"
)

// topView is the screen of top. One goroutine uses it; others look, and send what they found.
type topView struct {
	screen  tcell.Screen
	client  *latchkey.Client
	pattern string
	every   time.Duration

	list    *topList
	took    time.Duration // the last look
	failed  error         // of the last look, or nil
	looking bool
	paused  bool

	selected string // the name of the row
	offset   int    // of the first row on the screen
	typing   bool   // the filter
	asking   *latchkey.Object
	details  *topDetails
	notice   string // what came of the last thing that was done

	results chan func() // what others have found, to be taken over
	next    *time.Timer
}

// topDetails is one object, looked at more closely.
type topDetails struct {
	name    string
	object  latchkey.Object
	waiters []latchkey.Waiter
	err     error
	loaded  bool
}

// run shows until the user quits or ctx ends.
func (v *topView) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events := make(chan tcell.Event, 16)
	go v.screen.ChannelEvents(events, ctx.Done())
	v.results = make(chan func(), 4)
	v.next = time.NewTimer(0)
	defer v.next.Stop()
	stops := newStops()
	defer stops.release()
	for {
		v.draw()
		select {
		case <-ctx.Done():
			return nil
		case take := <-v.results:
			take()
		case <-v.next.C:
			v.look(ctx)
		case <-stops.asked:
			v.stop()
		case event := <-events:
			if v.handle(ctx, event) {
				return nil
			}
		}
	}
}

// stop leaves the terminal to the shell until top is continued.
func (v *topView) stop() {
	if v.screen.Suspend() != nil {
		return
	}
	stopGroup()
	if v.screen.Resume() == nil {
		v.screen.Sync() // it may have another size
	}
}

// later has something done beside the screen; what that returns is called with the result in hand.
func (v *topView) later(ctx context.Context, do func(context.Context) (take func())) {
	go func() {
		take := do(ctx)
		select {
		case v.results <- take:
		case <-ctx.Done():
		}
	}()
}

// look begins a look at everything, and one at the object that is shown, unless a look is under way.
func (v *topView) look(ctx context.Context) {
	if v.looking {
		return
	}
	v.looking = true
	if v.details != nil {
		v.lookAtOne(ctx, v.details.name)
	}
	v.later(ctx, func(ctx context.Context) func() {
		look := topLook{began: time.Now()}
		look.found, look.err = allObjects(ctx, v.client, v.pattern)
		look.ended = time.Now()
		return func() { v.takeLook(look) }
	})
}

func (v *topView) takeLook(look topLook) {
	v.looking, v.failed = false, look.err
	v.took = look.ended.Sub(look.began)
	if look.err == nil {
		v.list.apply(look)
	}
	if !v.paused {
		v.next.Reset(max(topOftest/2, v.every-v.took))
	}
}

// lookAtOne looks at the object that is shown, and at who waits for it.
func (v *topView) lookAtOne(ctx context.Context, name string) {
	v.later(ctx, func(ctx context.Context) func() {
		d := &topDetails{name: name, loaded: true}
		if d.object, d.err = v.client.Object(ctx, name); d.err == nil {
			d.waiters, d.err = waitersOf(ctx, v.client, d.object)
		}
		return func() {
			if v.details != nil && v.details.name == name {
				v.details = d
			}
		}
	})
}

// selectedRow is the row that is selected, the first if it is gone, nil if there are none.
func (v *topView) selectedRow() (index int, row *topRow) {
	for i, row := range v.list.shown {
		if row.Name == v.selected {
			return i, row
		}
	}
	if len(v.list.shown) == 0 {
		return 0, nil
	}
	return 0, v.list.shown[0]
}

// ask asks whether a lock is to be taken from its holders.
func (v *topView) ask() {
	o := latchkey.Object{}
	if v.details != nil {
		o = v.details.object
	} else if _, row := v.selectedRow(); row != nil {
		o = row.Object
	}
	switch {
	case o.Name == "":
	case !o.Locked():
		v.notice = fmt.Sprintf("%s is not a lock that is held", printable(o.Name))
	default:
		v.asking = &o
	}
}

var errHolderChanged = errors.New("its holder has changed meanwhile: nothing was done")

// force takes a lock away from the holders that the question was about.
func (v *topView) force(ctx context.Context, asked latchkey.Object) {
	v.notice = "unlocking " + printable(asked.Name)
	v.later(ctx, func(ctx context.Context) func() {
		held, err := forceFrom(ctx, v.client, asked)
		return func() {
			switch name := printable(asked.Name); {
			case err != nil:
				v.notice = fmt.Sprintf("%s: %v", name, err)
			case held:
				v.notice = name + " is unlocked"
			default:
				v.notice = name + " was free already"
			}
			v.next.Reset(0)
		}
	})
}

// forceFrom forces a lock that has the holders that it had. Of a sample each must still hold, and there must
// be no more than there were.
func forceFrom(ctx context.Context, client *latchkey.Client, asked latchkey.Object) (held bool, err error) {
	now, err := client.Inspect(ctx, asked.Name) // which tells all holders
	if err != nil {
		return false, err
	}
	if now.Kind == latchkey.KindNone {
		return false, nil
	}
	if now.Kind != asked.Kind || !stillHeld(asked, now) {
		return false, errHolderChanged
	}
	force, err := forceBy(string(asked.Kind))
	if err != nil {
		return false, err
	}
	return force(ctx, client, asked.Name)
}

// stillHeld reports whether those that were shown hold the lock now, and nobody else.
func stillHeld(asked latchkey.Object, now latchkey.Inspection) bool {
	there := latchkey.Object{Inspection: now}
	return len(now.Holders) <= asked.HolderCount &&
		!slices.ContainsFunc(asked.Holders, func(h latchkey.Holder) bool { return !holds(there, h) })
}
