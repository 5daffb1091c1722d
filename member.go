package latchkey

import (
	"reflect"
)

func (p *primitive) self() member              { return p }
func (p *primitive) fault() error              { return p.invalid }
func (p *primitive) order() (key, kind string) { return p.key, string(p.spec.kind) }
func (p *primitive) primitives() []*primitive  { return []*primitive{p} }

func (p *primitive) noun() string {
	switch p.spec.kind {
	case KindRead, KindWrite:
		return "the " + string(p.spec.kind) + " lock"
	case KindMutex:
		return "the mutex"
	}
	return "the lock"
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

// memberOf returns the lock that l is or embeds, nil if that is a nil pointer.
func memberOf(l Locker) (m member) {
	defer func() { _ = recover() }() // there is no other way to find a nil pointer that is embedded
	if m = l.self(); reflect.ValueOf(m).IsNil() {
		return nil
	}
	return m
}

// membersOf are the locks that the program gave. It is an error if one of them cannot be
// used, as far as that can be known without asking anybody: nothing is to be sent for the
// others then.
func membersOf(locks []Locker) ([]member, error) {
	if len(locks) == 0 {
		return nil, errNoMembers
	}
	members := make([]member, len(locks))
	for i, l := range locks {
		members[i] = memberOf(l)
		if members[i] == nil {
			return nil, invalid("member %d is nil", i+1)
		}
		if err := members[i].fault(); err != nil {
			return nil, ofMember(i, err)
		}
	}
	return members, nil
}
