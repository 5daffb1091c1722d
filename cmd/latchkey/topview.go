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

// topView is the screen of top. One goroutine uses it. Other goroutines query the server and send
// their results to it.
type topView struct {
	screen  tcell.Screen
	client  *latchkey.Client
	pattern string
	every   time.Duration

	list    *topList
	undrawn time.Time     // when the look began whose result is not on the screen yet, or zero
	took    time.Duration // by the latest refresh: a look, and drawing its result
	failed  error         // of the latest look, or nil
	looking bool
	paused  bool

	selected string // the name of the row
	offset   int    // of the first row on the screen
	typing   bool   // the filter
	asking   *latchkey.Object
	details  *topDetails
	helping  bool
	notice   string // the result of the last action

	results chan func() // apply the results of other goroutines
	next    *time.Timer
}

// topDetails is one object with its details.
type topDetails struct {
	name    string
	object  latchkey.Object
	waiters []latchkey.Waiter
	err     error
	loaded  bool
}

// run shows the screen until the user quits or ctx ends.
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
	clock := time.NewTicker(time.Second) // ages grow while no answer comes
	defer clock.Stop()
	for {
		v.draw()
		select {
		case <-ctx.Done():
			return nil
		case take := <-v.results:
			take()
		case <-v.next.C:
			v.look(ctx)
		case <-clock.C:
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
		v.screen.Sync() // the size may have changed
	}
}

// later calls do in another goroutine. The goroutine of the screen then calls the function that do
// returns.
func (v *topView) later(ctx context.Context, do func(context.Context) (take func())) {
	go func() {
		take := do(ctx)
		select {
		case v.results <- take:
		case <-ctx.Done():
		}
	}()
}

// look starts a walk over all objects, and a query of the object that is shown, unless a look is in
// flight.
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
		return func() { v.takeLook(look) }
	})
}

func (v *topView) takeLook(look topLook) {
	v.looking, v.failed = false, look.err
	if look.err == nil {
		v.list.apply(look)
		v.undrawn = look.began
	}
	if !v.paused {
		v.next.Reset(max(topOftest/2, v.every-time.Since(look.began)))
	}
}

// lookAtOne queries the object that is shown, and its waiters.
func (v *topView) lookAtOne(ctx context.Context, name string) {
	v.later(ctx, func(ctx context.Context) func() {
		d := &topDetails{name: name, loaded: true}
		if d.object, d.err = v.client.Inspect(ctx, name); d.err == nil {
			d.waiters, d.err = waitersOf(ctx, v.client, d.object)
		}
		return func() {
			if v.details != nil && v.details.name == name {
				v.details = d
			}
		}
	})
}

// selectedRow returns the selected row, the first row if the selected one is gone, or nil if there
// are no rows.
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

// ask asks the user whether to take a lock away from its holders.
func (v *topView) ask() {
	o := latchkey.Object{}
	if v.details != nil {
		o = v.details.object
	} else if _, row := v.selectedRow(); row != nil {
		o = row.Object
	}
	switch {
	case o.Name == "":
	case isDone(o):
		v.notice = fmt.Sprintf("%s is a Once that is done: latchkey once NAME --forget", printable(o.Name))
	case o.Kind == latchkey.KindOnce:
		v.notice = fmt.Sprintf("%s is a Once: end its process", printable(o.Name))
	case !o.Locked():
		v.notice = fmt.Sprintf("%s is not a held lock", printable(o.Name))
	default:
		v.asking = &o
	}
}

var errHolderChanged = errors.New("its holder has changed: nothing was done")

// force takes a lock away from the holders that the question named.
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
				v.notice = name + " was already free"
			}
			v.next.Reset(0)
		}
	})
}

// forceFrom forces a lock if its holders are still those of the question. Of a sample, each holder
// must still hold the lock, and there must not be more holders than before.
func forceFrom(ctx context.Context, client *latchkey.Client, asked latchkey.Object) (held bool, err error) {
	now, err := client.Inspect(ctx, asked.Name) // returns all holders
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

// stillHeld reports whether all holders that were shown still hold the lock, and the lock has no
// more holders than then.
func stillHeld(asked, now latchkey.Object) bool {
	return len(now.Holders) <= asked.HolderCount &&
		!slices.ContainsFunc(asked.Holders, func(h latchkey.Holder) bool { return !holds(now, h) })
}
