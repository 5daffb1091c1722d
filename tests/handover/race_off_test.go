//go:build !race

package handover

// raced is whether the race detector makes everything ten times slower.
const raced = false
