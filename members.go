package latchkey

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
)

// placed is a lock that knows its place in the order: a primitive, by its key and kind.
type placed interface{ base() *primitive }

func (p *primitive) base() *primitive { return p }

// grouped is a lock that is several.
type grouped interface{ inside() *several }

func (l *several) inside() *several { return l }

// flat takes MultiLocks apart: all of all is all. One that cannot be used stays as it is.
func flat(locks []Locker) (all []Locker) {
	for _, l := range locks {
		m, is := l.(*MultiLock)
		if is && m != nil && m.invalid == nil {
			for _, inner := range m.members {
				all = append(all, inner)
			}
		} else {
			all = append(all, l)
		}
	}
	return all
}

// inOrder sorts locks, drops those that are there twice, and refuses what cannot be used,
// or not together.
func inOrder(locks []Locker) (kept []member, err error) {
	if err := usable(locks); err != nil {
		return nil, err
	}
	sorted := slices.Clone(locks)
	slices.SortStableFunc(sorted, func(a, b Locker) int {
		keyA, kindA := orderOf(a)
		keyB, kindB := orderOf(b)
		return cmp.Or(strings.Compare(keyA, keyB), strings.Compare(kindA, kindB))
	})
	for _, l := range sorted {
		twice, err := among(kept, l)
		if err != nil {
			return nil, err
		}
		if !twice {
			kept = append(kept, l.(member)) // see usable
		}
	}
	return kept, nil
}

// usable tells what is wrong with one of the locks, as far as it can be known without
// asking anybody: nothing is to be sent for the others then.
func usable(locks []Locker) error {
	if len(locks) == 0 || slices.ContainsFunc(locks, isNil) {
		return invalid("no lock")
	}
	for _, l := range locks {
		if _, is := l.(member); !is {
			return invalid("%q is no lock of this package", l.Name())
		}
		if err := faultOf(l); err != nil {
			return err
		}
	}
	return nil
}

func isNil(l Locker) bool {
	v := reflect.ValueOf(l)
	return l == nil || v.Kind() == reflect.Pointer && v.IsNil()
}

func faultOf(l Locker) error {
	switch l := l.(type) {
	case placed:
		return l.base().invalid
	case grouped:
		return l.inside().invalid
	}
	return nil
}

// orderOf is what locks are ordered by.
func orderOf(l Locker) (key, kind string) {
	if p, is := l.(placed); is {
		return p.base().key, string(p.base().kind.kind)
	}
	return l.Name(), ""
}

// among reports whether a lock is one of the others. One that shares a key with another
// without being the same could only wait for that.
func among(others []member, l Locker) (bool, error) {
	for _, other := range others {
		switch {
		case same(l, other):
			return true, nil
		case shareKey(l, other):
			return false, invalid("%q and %q are not two locks, but have a key in common", other.Name(), l.Name())
		}
	}
	return false, nil
}

// same reports whether two are one lock.
func same(a, b Locker) bool {
	if a == b {
		return true
	}
	p, is := a.(placed)
	o, too := b.(placed)
	return is && too && sameKey(p.base(), o.base()) && p.base().kind.kind == o.base().kind.kind
}

func shareKey(a, b Locker) bool {
	for _, p := range primitivesOf(a) {
		if slices.ContainsFunc(primitivesOf(b), func(o *primitive) bool { return sameKey(p, o) }) {
			return true
		}
	}
	return false
}

func sameKey(a, b *primitive) bool { return a.client == b.client && a.key == b.key }

// primitivesOf are the locks that a lock comes down to, as far as they are known.
func primitivesOf(l Locker) (all []*primitive) {
	switch l := l.(type) {
	case placed:
		return []*primitive{l.base()}
	case grouped:
		for _, m := range l.inside().members {
			all = append(all, primitivesOf(m)...)
		}
	}
	return all
}
