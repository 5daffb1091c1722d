//go:build race

package main

// buildFlags builds the tested binary with the race detector, like this one.
var buildFlags = []string{"-race"}
