// Package rig is what the black-box tests of Latchkey stand on: a Redis server or a
// whole topology, chosen from what the machine offers, proxies that break the link to
// it in exact ways, topologies that fail over, child processes to kill, and judges
// that tell whether exclusion held.
//
// A test binary calls [Main] from TestMain. Tests share one server ([Shared]) and
// keep apart by unique names ([Name]), or start one of their own ([Fresh]) when
// they pause, kill or reconfigure it. What a test needs beyond plain commands it
// says with [Need]; a backend that cannot do it skips the test and says why.
package rig
