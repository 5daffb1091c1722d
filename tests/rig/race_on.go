//go:build race

package rig

// RaceDetector says whether the tests run with it.
const RaceDetector = true
