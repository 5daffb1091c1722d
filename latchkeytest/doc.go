// Package latchkeytest gives unit tests a Redis server that lives inside the
// test process, so that code which uses latchkey can be tested without
// installing, starting or sharing anything.
//
//	func TestNightlyReport(t *testing.T) {
//		server := latchkeytest.NewServer(t)
//		reports := NewReports(server.Client())
//		…
//	}
//
// Every server starts empty and belongs to one test; tests with a server each
// run in parallel without seeing one another's locks.
//
// # Three ways to deal with time
//
//   - By default leases run out by themselves, on the clock of the machine.
//   - Inside a bubble of [testing/synctest] they run out on the bubble's clock: an
//     hour passes in milliseconds, and every expiry comes at an exact moment.
//     Make the server inside the bubble and use [Server.Client]. Prefer this one
//     for everything that has to do with time.
//   - With [ManualTime] the server's clock stands still until the test moves it.
//     Only the server's: clients go on counting real time, so this is the way to
//     let the lease of a holder that "died" run out at once, not the way to make
//     waiting clients wake up early.
//
// # What it is not
//
// The server is miniredis: commands, scripts, expiry and classic messages behave
// as those of Redis. There is no cluster, no Sentinel, no replica, no sharded
// message, no eviction, no persistence, no TLS and no access control, and its
// speed says nothing about a real server's: with a running clock each command
// looks at every key, which a test with thousands of keys will notice. A test of
// such things needs a real server.
package latchkeytest
