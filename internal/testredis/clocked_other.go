//go:build !linux

package testredis

import "testing"

// Real returns no server.
func Real(*testing.T) (s *Clocked, without string) {
	return nil, "the clock of a server is moved on Linux only"
}
