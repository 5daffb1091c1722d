package line

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/engine/turns"
)

// What a client holds is registered by its key, from when it begins until it is over. It uses the
// line of what it is while there is one: while goroutines of the client want it, and for a short
// time after.

// Held is something that a client holds, and that goroutines of it may want.
type Held interface {
	// Table returns the table of the client that holds it.
	Table() *Table
	// LineKey names what those wait for that want it.
	LineKey() Key
	// PassedIn returns the line in which it is passed on, or Only if it is not passed on.
	PassedIn() Side
	// KeepsOut reports whether it keeps others out.
	KeepsOut() bool
}

// Links link something that a client holds to the others on its key, and to the goroutines that
// want it. The mutex of the shard of the key guards the fields that change.
type Links struct {
	of Held

	newer, older *Links // the next ones on the key, or nil
	line         *Line  // the side in which it is passed on, or the whole; nil if there is none
	mayAttempt   bool   // its last release failed, so those that wait may query the server
	echo         bool   // the message of its release is to be ignored
}

// LinksOf returns the links of something that is about to be held.
func LinksOf(h Held) Links { return Links{of: h} }

// Find returns what is held on a key, the newest for which wanted returns true, or nil. The mutex
// of the shard is held meanwhile.
func (all *Table) Find(key string, wanted func(Held) bool) Held {
	shard := all.lock(key)
	defer shard.mu.Unlock()
	for l := shard.live[key]; l != nil; l = l.older {
		if wanted(l.of) {
			return l.of
		}
	}
	return nil
}

// Held returns everything that is held.
func (all *Table) Held() (held []Held) {
	for i := range all.shards {
		shard := &all.shards[i]
		shard.mu.Lock()
		for _, newest := range shard.live {
			for l := newest; l != nil; l = l.older {
				held = append(held, l.of)
			}
		}
		shard.mu.Unlock()
	}
	return held
}

// link links something in. s.mu is held.
func (s *shard) link(l *Links) {
	key := l.of.LineKey().Key
	if older := s.live[key]; older != nil {
		l.older, older.newer = older, l
	}
	s.live[key] = l
}

// unlink is the reverse of link. s.mu is held.
func (s *shard) unlink(l *Links) {
	newer, older := l.newer, l.older
	l.newer, l.older = nil, nil
	if older != nil {
		older.newer = newer
	}
	switch key := l.of.LineKey().Key; {
	case newer != nil:
		newer.older = older
	case older != nil:
		s.live[key] = older
	default:
		delete(s.live, key)
	}
}

// attach makes it use the line, in which it keeps others out. shard.mu is held.
func (l *Links) attach(q *Line) {
	q.users++
	q.attached++
	l.line = q.side(l.of.PassedIn())
	l.line.held += l.keepsOut()
	if !l.mayAttempt {
		l.line.blocking++
	}
}

// keepsOut is 1 if it keeps others out, else 0.
func (l *Links) keepsOut() int {
	if l.of.KeepsOut() {
		return 1
	}
	return 0
}

// lockShard locks the shard of the key, and returns it.
func (l *Links) lockShard() *shard {
	return l.of.Table().lock(l.of.LineKey().Key)
}

// HoldBegins is called when it begins to be held, and returns how often the hold may be passed on.
func (l *Links) HoldBegins() (passes int) {
	shard := l.lockShard()
	defer shard.mu.Unlock()
	shard.link(l)
	whole := shard.lines[l.of.LineKey()]
	if whole == nil {
		return endlessPasses
	}
	l.attach(whole)
	whole.strangers.WeHold()
	q := l.line
	if l.of.KeepsOut() {
		q.answer = lastAnswer{err: fault.ErrNotAcquired}
	}
	q.drain()
	return q.passesOfTurn()
}

// FirstInLine returns the first in line behind it, or nil.
func (l *Links) FirstInLine() Recipient {
	defer l.lockShard().mu.Unlock()
	if q := l.line; q != nil && !q.busy && len(q.waiters) > 0 {
		return q.waiters[0].recipient
	}
	return nil
}

// HasLine reports whether anybody waits in line behind it.
func (l *Links) HasLine() bool {
	defer l.lockShard().mu.Unlock()
	return l.line != nil && len(l.line.waiters) > 0
}

// TakeFirst removes the first in line, to pass it the hold. It returns nil if there is none,
// somebody is in front, or the waiter wants something else.
func (l *Links) TakeFirst() *Waiter {
	defer l.lockShard().mu.Unlock()
	q := l.line
	if q == nil || q.busy || len(q.waiters) == 0 || q.readersFirst() {
		return nil
	}
	if r := q.waiters[0].recipient; r == nil || !r.Wants(l.of) {
		return nil
	}
	w := q.popFirst()
	w.taken = true
	q.whole().strangers.WeHold()
	return w
}

// OpenLine lets others have the hold along with its holder, until CloseLine.
func (l *Links) OpenLine() {
	shard := l.lockShard()
	defer shard.mu.Unlock()
	shard.lineOf(l.of.LineKey())
	l.line.open = l.of
}

// CloseLine ends OpenLine.
func (l *Links) CloseLine() {
	defer l.lockShard().mu.Unlock()
	if q := l.line; q != nil && q.open == l.of {
		q.open = nil
	}
}

// OpenFor returns for how long the release leaves a mutex to other libraries: see
// turns.Recipe.OpenFor.
func (l *Links) OpenFor(taken time.Time) time.Duration {
	defer l.lockShard().mu.Unlock()
	if l.line == nil {
		return 0
	}
	return l.line.recipe.OpenFor(taken, time.Now())
}

// LeftFree records what the release of a mutex did: see turns.Recipe.LeftFree.
func (l *Links) LeftFree(open time.Duration, granted bool) {
	defer l.lockShard().mu.Unlock()
	now := time.Now()
	if q := l.line; q != nil && q.recipe.LeftFree(open, granted, now) {
		q.openUntil = now.Add(open)
	}
}

// ReceiversSeen records how many subscribers received the message that the lock is free. If there
// are other clients among them, those go first.
func (l *Links) ReceiversSeen(receivers int64) {
	shard := l.lockShard()
	defer shard.mu.Unlock()
	if l.line != nil && l.line.sub.Live() {
		receivers--
	}
	if receivers <= 0 {
		return
	}
	q, now := shard.lineOf(l.of.LineKey()), time.Now()
	q.contended = true
	if !q.strangers.TheyReceive(now) {
		return
	}
	if line, open := q.exclusive(), now.Add(turns.StrangerPause); open.After(line.openUntil) {
		line.openUntil = open
	}
}

// IgnoreOwnRelease is called before a release is sent. If this client will receive the message of
// it, that must not wake the front, because the end of the hold does.
func (l *Links) IgnoreOwnRelease() {
	defer l.lockShard().mu.Unlock()
	if l.line == nil || !l.line.sub.Live() {
		return
	}
	l.line.echoes++
	l.echo = true
}

// ReleaseFails lets the first in line query the server, because the last release has failed: it may
// have run, or may never run. The waiter that comes to the front goes on with next, which may be
// nil; if there is no such waiter, next is returned as left. taken is false if that was done
// before: then next is still the caller's.
func (l *Links) ReleaseFails(next Place) (left Place, taken bool) {
	defer l.lockShard().mu.Unlock()
	if l.mayAttempt {
		return nil, false
	}
	l.mayAttempt = true
	if l.line == nil {
		return next, true
	}
	return l.line.unblock(next), true
}

// HoldEnds ends the hold for the goroutines in line. noMessage says that the message of the release
// was never published. next is for the next waiter in front, and is returned as left
// if nobody waits. whole is the line if it has other users: its front is to be woken if others may
// hold the key now.
func (l *Links) HoldEnds(noMessage bool, next Place) (left Place, whole *Line) {
	shard := l.lockShard()
	defer shard.mu.Unlock()
	shard.unlink(l)
	q := l.line
	if q == nil {
		return next, nil
	}
	whole, l.line = q.whole(), nil
	defer whole.endUse()
	whole.attached--
	q.held -= l.keepsOut()
	if noMessage && l.echo && q.echoes > 0 {
		q.echoes--
	}
	if !l.mayAttempt { // it kept everybody from the front until now
		next = q.unblock(next)
	}
	if whole.users == 1 {
		return next, nil
	}
	return next, whole
}

// unblock counts one hold less that keeps everybody from the front. shard.mu is held.
func (q *Line) unblock(next Place) (left Place) {
	q.blocking--
	if q.blocking > 0 || q.busy {
		return next // nobody may come to the front yet, or the one in front has an owner already
	}
	q.next()
	return q.leaveTo(next)
}
