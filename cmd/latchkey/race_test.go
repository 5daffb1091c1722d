//go:build race

package main

// buildFlags make the tested binary one that detects races, as this one does.
var buildFlags = []string{"-race"}
