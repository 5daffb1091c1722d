//go:build race

package exploretest

// raced reports whether the race detector makes everything ten times slower. It has nothing to
// find: an exploration is one goroutine.
const raced = true
