//go:build !race

package rig

const raceDetector = false
