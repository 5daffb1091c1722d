//go:build race

package rig

// RaceDetector reports whether the tests run with the race detector.
const RaceDetector = true
