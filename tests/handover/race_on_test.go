//go:build race

package handover

// raced is whether the race detector makes everything ten times slower. There is nothing to
// find for it: an exploration is one goroutine.
const raced = true
