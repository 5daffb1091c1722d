package main

import (
	"context"
	"unicode"
	"unicode/utf8"

	"github.com/gdamore/tcell/v2"
)

// handle handles an event of the screen, and reports whether to quit.
func (v *topView) handle(ctx context.Context, event tcell.Event) (quit bool) {
	switch event := event.(type) {
	case nil: // the screen is closed
		return true
	case *tcell.EventResize:
		v.screen.Sync()
	case *tcell.EventKey:
		return v.key(ctx, event)
	}
	return false
}

func (v *topView) key(ctx context.Context, key *tcell.EventKey) (quit bool) {
	switch key.Key() {
	case tcell.KeyCtrlC:
		return true
	case tcell.KeyCtrlZ:
		v.stop()
		return false
	}
	v.notice = ""
	switch {
	case v.asking != nil:
		asked := *v.asking
		v.asking = nil
		if key.Key() == tcell.KeyRune && key.Rune() == 'y' {
			v.force(ctx, asked)
		} else {
			v.notice = "nothing was done"
		}
	case v.helping:
		v.helping = false
		return key.Key() == tcell.KeyRune && key.Rune() == 'q'
	case v.typing:
		v.typeFilter(key)
	default:
		return v.command(ctx, key)
	}
	return false
}

// typeFilter changes the filter. The filter already applies while the user types it.
func (v *topView) typeFilter(key *tcell.EventKey) {
	l := v.list
	switch key.Key() {
	case tcell.KeyEnter:
		v.typing = false
	case tcell.KeyEscape:
		v.typing, l.filter = false, ""
	case tcell.KeyBackspace, tcell.KeyBackspace2:
		_, last := utf8.DecodeLastRuneInString(l.filter)
		l.filter = l.filter[:len(l.filter)-last]
	case tcell.KeyRune:
		l.filter += string(key.Rune())
	}
	l.arrange()
}

// topChrome is how many lines are usually not rows: title, totals, head and foot.
const topChrome = 4

func (v *topView) command(ctx context.Context, key *tcell.EventKey) (quit bool) {
	_, height := v.screen.Size()
	page := max(1, height-topChrome)
	switch key.Key() {
	case tcell.KeyUp:
		v.move(-1)
	case tcell.KeyDown:
		v.move(1)
	case tcell.KeyPgUp:
		v.move(-page)
	case tcell.KeyPgDn:
		v.move(page)
	case tcell.KeyHome:
		v.move(-len(v.list.shown))
	case tcell.KeyEnd:
		v.move(len(v.list.shown))
	case tcell.KeyEnter:
		if _, row := v.selectedRow(); row != nil && v.details == nil {
			v.details = &topDetails{name: row.Name, object: row.Object}
			v.lookAtOne(ctx, row.Name)
		}
	case tcell.KeyEscape:
		v.details = nil
	case tcell.KeyRune:
		return v.letter(ctx, unicode.ToLower(key.Rune()))
	}
	return false
}

func (v *topView) letter(ctx context.Context, letter rune) (quit bool) {
	switch letter {
	case 'q':
		return true
	case 'f':
		v.ask()
	case 'p':
		v.paused = !v.paused
		if !v.paused {
			v.next.Reset(0)
		}
	case ' ':
		v.look(ctx)
	case '?':
		v.helping = true
	case '/':
		v.typing, v.details = true, nil
	case rune(byWaiters), rune(byHolders), rune(byAge), rune(byTTL), rune(byName):
		v.list.sortBy(topOrder(letter))
		v.selected, v.offset = "", 0
	}
	return false
}

// move moves the selection.
func (v *topView) move(by int) {
	if len(v.list.shown) == 0 || v.details != nil {
		return
	}
	at, _ := v.selectedRow()
	v.selected = v.list.shown[min(max(at+by, 0), len(v.list.shown)-1)].Name
}
