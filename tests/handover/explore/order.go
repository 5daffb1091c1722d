package explore

import (
	"cmp"
	"slices"
)

// Clients is how many clients a model has.
const Clients = 3

// Order has a client for each place.
type Order [Clients]int

// Unchanged has each client in its own place.
var Unchanged = Order{0, 1, 2}

// Sorted returns the clients by key, the lowest first.
func Sorted(key func(client int) uint64) Order {
	var keys [Clients]uint64
	for c := range keys {
		keys[c] = key(c)
	}
	o := Unchanged
	slices.SortStableFunc(o[:], func(c, d int) int { return cmp.Compare(keys[c], keys[d]) })
	return o
}

// Places returns the place of each client.
func (o Order) Places() (places Order) {
	for place, c := range o {
		places[c] = place
	}
	return places
}
