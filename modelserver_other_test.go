//go:build !linux

package latchkey

import "testing"

func realModelServer(*testing.T) (s *modelServer, without string) {
	return nil, "the clock of a server is moved on Linux only"
}
