//go:build !race

package exploretest

// raced reports whether the race detector makes everything ten times slower.
const raced = false
