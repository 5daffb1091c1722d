package group

import (
	"cmp"
	"slices"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
)

// usable returns the members, or an error if one of them is known to be unusable before anything is
// sent, so that nothing is sent for the others either.
func usable(members []Member) ([]Member, error) {
	if len(members) == 0 {
		return nil, errNoMembers
	}
	for i, m := range members {
		if m == nil {
			return nil, fault.Invalid("member %d is nil", i+1)
		}
		if err := m.Fault(); err != nil {
			return nil, ofMember(i, err)
		}
	}
	return members, nil
}

// flatten replaces each MultiLock by its members.
func flatten(members []Member) (all []Member) {
	for _, m := range members {
		if s, is := m.(*Lock); is && s.kind == keyspace.KindMulti {
			all = append(all, s.Members...)
		} else {
			all = append(all, m)
		}
	}
	return all
}

// inOrder sorts members by their keys, then by their kinds.
func inOrder(members []Member) []Member {
	return slices.SortedStableFunc(slices.Values(members), func(a, b Member) int {
		keyA, kindA := a.Order()
		keyB, kindB := b.Order()
		return cmp.Or(cmp.Compare(keyA, keyB), cmp.Compare(kindA, kindB))
	})
}

// withoutDuplicates drops locks that are given twice, or refuses them. Two different members that
// share a key are an error: one could only wait for the other.
func withoutDuplicates(members []Member, refuse bool) (kept []Member, err error) {
	for i, m := range members {
		first := slices.IndexFunc(kept, func(other Member) bool { return sameLock(m, other) })
		switch {
		case first >= 0 && refuse:
			return nil, fault.Invalid("members %d and %d are the same lock, %q", first+1, i+1, m.Name())
		case first >= 0:
			continue
		}
		for _, other := range kept {
			if key, share := sharedKey(m, other); share {
				return nil, fault.Invalid("%s %q and %s %q cannot be members together: both need the key %q",
					noun(other), other.Name(), noun(m), m.Name(), key)
			}
		}
		kept = append(kept, m)
	}
	return kept, nil
}

// noun returns what a member is, in errors.
func noun(m Member) string {
	switch _, kind := m.Order(); kind {
	case keyspace.KindRed:
		return "the RedLock"
	case keyspace.KindMulti:
		return "the MultiLock"
	case keyspace.KindRead, keyspace.KindWrite, keyspace.KindFenced, keyspace.KindFair, keyspace.KindSpin:
		return "the " + string(kind) + " lock"
	case keyspace.KindMutex:
		return "the mutex"
	}
	return "the lock"
}

// sameLock reports whether two members are the same lock.
func sameLock(a, b Member) bool {
	if a == b {
		return true
	}
	if isComposite(a) || isComposite(b) {
		return false
	}
	p, o := a.Locks()[0], b.Locks()[0]
	return sameKey(p, o) && p.Spec.Kind == o.Spec.Kind
}

func isComposite(m Member) bool {
	_, is := m.(*Lock)
	return is
}

// sharedKey returns a key that both members need.
func sharedKey(a, b Member) (key string, share bool) {
	for _, p := range a.Locks() {
		for _, o := range b.Locks() {
			if sameKey(p, o) {
				return p.Names.Key, true
			}
		}
	}
	return "", false
}

func sameKey(a, b *ownership.Lock) bool { return a.Client == b.Client && a.Names.Key == b.Names.Key }
