package line

import "sync"

// Used has what goroutines of a client use together, by key, for as long as one of them does.
type Used[K comparable, V any] struct {
	create func(all *Used[K, V], key K) *V

	mu    sync.Mutex
	byKey map[K]*V
	users map[K]int
}

// NewUsed returns a set in which create makes what is used first.
func NewUsed[K comparable, V any](create func(*Used[K, V], K) *V) *Used[K, V] {
	return &Used[K, V]{create: create, byKey: map[K]*V{}, users: map[K]int{}}
}

// Use returns what has that key, and counts the caller as a user.
func (u *Used[K, V]) Use(key K) *V {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.byKey[key] == nil {
		u.byKey[key] = u.create(u, key)
	}
	u.users[key]++
	return u.byKey[key]
}

// Known returns what has that key, or nil.
func (u *Used[K, V]) Known(key K) *V {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.byKey[key]
}

// Done ends a use.
func (u *Used[K, V]) Done(key K) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.users[key]--; u.users[key] == 0 {
		delete(u.byKey, key)
		delete(u.users, key)
	}
}
