package latchkey

import (
	"hash/maphash"
	"sync/atomic"
)

// nameCache has the keys of the names that a client has used lately: a lock that is made anew for
// each use then costs no more than one that is kept. What it has is never changed.
type nameCache struct {
	seed maphash.Seed
	sets [1024][4]atomic.Pointer[keys] // by the hash of the name, the newer ones first
}

func newNameCache() *nameCache { return &nameCache{seed: maphash.MakeSeed()} }

// keysOf is [Options.keysOf].
func (n *nameCache) keysOf(o *Options, name string) (*keys, error) {
	set := &n.sets[maphash.String(n.seed, name)%uint64(len(n.sets))]
	for i := range set {
		if k := set[i].Load(); k != nil && k.name == name {
			return k, nil
		}
	}
	k, err := o.keysOf(name)
	if err == nil {
		for i, newer := 0, k; i < len(set) && newer != nil; i++ {
			newer = set[i].Swap(newer)
		}
	}
	return k, err
}
