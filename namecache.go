package latchkey

import (
	"hash/maphash"
	"sync/atomic"
)

// nameCache has the keys of the locks that a client used recently. A lock value that is created for each use
// then costs no more than one that is kept, and a hold need not store its keys. Cached keys never change.
type nameCache struct {
	seed maphash.Seed
	sets [128][4]atomic.Pointer[keys] // by the hash of the name, newest first
}

func newNameCache() *nameCache { return &nameCache{seed: maphash.MakeSeed()} }

// find returns the keys of a lock of that family, or nil.
func (n *nameCache) find(family Kind, name string) *keys {
	set := n.setOf(name)
	for i := range set {
		if k := set[i].Load(); k != nil && k.name == name && k.family == family {
			return k
		}
	}
	return nil
}

// add adds keys, and evicts the oldest ones of the set.
func (n *nameCache) add(k *keys) {
	set := n.setOf(k.name)
	for i, newer := 0, k; i < len(set) && newer != nil; i++ {
		newer = set[i].Swap(newer)
	}
}

func (n *nameCache) setOf(name string) *[4]atomic.Pointer[keys] {
	return &n.sets[maphash.String(n.seed, name)%uint64(len(n.sets))]
}
