//go:build !race

package handover

// raced reports whether the race detector makes everything ten times slower.
const raced = false
