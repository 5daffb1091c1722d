// Package rig is the basis of the black-box tests of Latchkey. It provides a Redis server or a
// whole topology, chosen from what the machine offers, proxies that break the link to it in exact
// ways, topologies that fail over, child processes to kill, and checks that exclusion held.
//
// A test binary calls [Main] from TestMain. Tests share one server ([Shared]) and use unique names
// ([Name]), or start a server of their own ([Fresh]) if they pause, kill or reconfigure it. A test
// calls [Need] for what it needs beyond plain commands; on a backend that lacks it, Need skips the
// test and gives the reason.
package rig
