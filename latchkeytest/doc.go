// Package latchkeytest gives unit tests a Redis server inside the test process,
// so that you can test code that uses latchkey without installing, starting or
// sharing anything.
//
//	func TestNightlyReport(t *testing.T) {
//		server := latchkeytest.NewServer(t)
//		reports := NewReports(server.Client())
//		…
//	}
//
// It is a module of its own, so that a program without such tests does not
// depend on it: go get github.com/latchkey-go/latchkey/latchkeytest.
//
// Every server starts empty and belongs to one test. Tests that each have a
// server run in parallel without seeing one another's locks.
//
// # Three ways to deal with time
//
//   - By default leases expire on the clock of the machine.
//   - Inside a bubble of [testing/synctest] they expire on the bubble's clock: an
//     hour passes in milliseconds, and every lease expires at an exact time.
//     Create the server inside the bubble and use [Server.Client]. Prefer this
//     way for every test that depends on time.
//   - With [ManualTime] the server's clock stands still until the test moves it.
//     Clients still count real time. Use this way to let the lease of a holder
//     that "died" expire at once; it does not wake waiting clients early.
//
// # What it is not
//
// The server is miniredis: commands, scripts, expiry and classic messages behave
// as those of Redis. There is no cluster, no Sentinel, no replica, no sharded
// message, no eviction, no persistence, no TLS and no access control. Its speed
// says nothing about the speed of a real server: with a running clock each
// command looks at every key, which slows down a test with thousands of keys. To
// test these things, use a real server.
package latchkeytest
