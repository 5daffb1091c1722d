//go:build !race

package permits

// raced reports whether the race detector makes everything ten times slower.
const raced = false
