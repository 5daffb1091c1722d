package rig

import (
	"os"
	"strings"
	"testing"
	"time"
)

// Capability is something that only some backends can do.
type Capability uint

// What a test may need beyond commands, scripts and messages.
const (
	// Private is a server of the test's own, started by [Fresh].
	Private Capability = 1 << iota
	// Process is a private server that can be paused, killed and restarted.
	Process
	// Stats is INFO, MONITOR and CLIENT LIST.
	Stats
	// Settings is CONFIG, ACL and CLIENT KILL on a private server.
	Settings
	// Topology is several servers of the test's own, linked as it wants.
	Topology
	// Single is one server at the one address that is in its URL.
	Single
	// Speed is a server that keeps its pace with thousands of keys.
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

// Long skips a long test in short mode (go test -short): one that shows the same on
// every backend, or takes its time for being sure.
func Long(tb testing.TB) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("a long one: not with -short")
	}
}

// Lasting is how long something goes on: half as long in short mode.
func Lasting(full time.Duration) time.Duration {
	if testing.Short() {
		return full / 2
	}
	return full
}

// Campaign is how long a random history lasts: as the environment variable says, for a
// long campaign, or as [Lasting].
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

// Repeated runs a random history, and again until a long campaign is over: one that is
// checked in pieces takes no longer for being long.
func Repeated(t *testing.T, variable string, full time.Duration, run func(t *testing.T, lasts time.Duration)) {
	t.Helper()
	for left := Campaign(t, variable, full); left > 0 && !t.Failed(); left -= full {
		t.Run(left.String(), func(t *testing.T) { run(t, min(left, full)) })
	}
}

// Sized is how often something is done: as often as said on a server that keeps its
// pace, a tenth of it on the embedded one, and in short mode.
func Sized(full int) int {
	if testing.Short() {
		return max(full/10, 1)
	}
	return Paced(full)
}

// Paced is how much a server does in a time that is given, also in short mode: a tenth
// of it on the embedded one.
func Paced(full int) int {
	if shared.able&Speed != 0 {
		return full
	}
	return max(full/10, 1)
}

// Need skips the test when the backend lacks any of the given capabilities, and
// says which. On the server backend nothing is ever skipped.
func Need(tb testing.TB, needs ...Capability) {
	tb.Helper()
	for _, need := range needs {
		if lacking := need &^ shared.able; lacking != 0 {
			tb.Skipf("backend %s does not offer %v", shared.kind, lacking)
		}
	}
}
