package tests

import "time"

// What [latchkey.Options] default to.
const (
	defaultLease       = 30 * time.Second
	defaultStale       = 5 * time.Second
	defaultPollCeiling = 2 * time.Second
	defaultTurn        = 10 * time.Millisecond
	defaultMaxInFlight = 512
)

// The bounds of what the library accepts.
const (
	shortestLease = time.Millisecond
	longestLease  = 10 * 365 * 24 * time.Hour
	longestStale  = time.Hour
	longestTurn   = time.Second
	longestName   = 512   // bytes
	longestValue  = 65536 // bytes
)
