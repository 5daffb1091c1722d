package rig

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Capability is a feature that only some backends have.
type Capability uint

// The features that a test may need beyond commands, scripts and messages.
const (
	// Private is a server of the test's own, started by [Fresh].
	Private Capability = 1 << iota
	// Process is a private server that can be paused, killed and restarted.
	Process
	// Stats is INFO, MONITOR and CLIENT LIST.
	Stats
	// Settings is CONFIG, ACL and CLIENT KILL on a private server.
	Settings
	// Topology is several servers of the test's own, linked as the test needs.
	Topology
	// Single is one server at the one address in its URL.
	Single
	// Speed is a server that stays fast with thousands of keys.
	Speed
)

var capabilityNames = []struct {
	bit  Capability
	name string
}{
	{Private, "a private server"},
	{Process, "control of the server process"},
	{Stats, "INFO and MONITOR"},
	{Settings, "CONFIG and ACL"},
	{Topology, "topologies of the test's own"},
	{Single, "a single server"},
	{Speed, "the speed of a real server"},
}

func (c Capability) String() string {
	var names []string
	for _, each := range capabilityNames {
		if c&each.bit != 0 {
			names = append(names, each.name)
		}
	}
	return strings.Join(names, ", ")
}

// Long skips a long test in short mode (go test -short): a test that shows the same on every
// backend, or that takes long to be reliable.
func Long(tb testing.TB) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("a long one: not with -short")
	}
}

// Lasting returns how long something runs: full, or half of it in short mode.
func Lasting(full time.Duration) time.Duration {
	if testing.Short() {
		return full / 2
	}
	return full
}

// Campaign returns how long a random history lasts: the value of the environment variable, for a
// long campaign, or else [Lasting].
func Campaign(tb testing.TB, variable string, full time.Duration) time.Duration {
	tb.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return Lasting(full)
	}
	lasts, err := time.ParseDuration(text)
	if err != nil {
		tb.Fatalf("rig: %s: %v", variable, err)
	}
	return lasts
}

// Repeated runs a random history, and repeats it until a long campaign is over, so that no single
// check has to cover the whole campaign.
func Repeated(t *testing.T, variable string, full time.Duration, run func(t *testing.T, lasts time.Duration)) {
	t.Helper()
	for left := Campaign(t, variable, full); left > 0 && !t.Failed(); left -= full {
		t.Run(left.String(), func(t *testing.T) { run(t, min(left, full)) })
	}
}

// Sized returns how often something is done: full times on a fast server, a tenth of that on the
// embedded server and in short mode.
func Sized(full int) int {
	if testing.Short() {
		return max(full/10, 1)
	}
	return Paced(full)
}

// Count returns how often something is done: the value of the environment variable, for a long
// campaign, on any backend, or else usual.
func Count(tb testing.TB, variable string, usual int) int {
	tb.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		tb.Fatalf("rig: %s: %v", variable, err)
	}
	return n
}

// Paced returns how much a server does in a given time, regardless of short mode: full, or a tenth
// of that on the embedded server.
func Paced(full int) int {
	if shared.able&Speed != 0 {
		return full
	}
	return max(full/10, 1)
}

// Need skips the test if the backend lacks any of the given capabilities, and names them. On the
// server backend nothing is ever skipped.
func Need(tb testing.TB, needs ...Capability) {
	tb.Helper()
	for _, need := range needs {
		if lacking := need &^ shared.able; lacking != 0 {
			tb.Skipf("backend %s does not offer %v", shared.kind, lacking)
		}
	}
}
