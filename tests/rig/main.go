package rig

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Main runs the tests of a package: it starts the shared server, prints which backend it is, runs
// the tests, stops the server, and fails the run if a goroutine is left. The functions in after
// stop what tests share. In a process that a [ChildProgram] started, Main runs that child instead.
func Main(m *testing.M, after ...func()) {
	if child, ok := childToRun(); ok {
		os.Exit(child())
	}
	os.Exit(runTests(m, after))
}

func runTests(m *testing.M, after []func()) int {
	if err := openShared(); err != nil {
		fmt.Fprintln(os.Stderr, "rig: no backend:", err)
		return 1
	}
	fmt.Printf("rig: backend %s\n", shared.describe())
	// Parallel tests wait for time to pass more than for a processor. A topology needs more
	// processors than a single server. If the server is in this process, the tests wait for it as
	// well. -parallel on the command line is read later, and overrides this.
	parallel := "16"
	switch {
	case shared.able&Speed != 0 && shared.able&Single == 0:
		parallel = "12"
	case shared.able&Speed != 0:
	case RaceDetector:
		parallel = "3" // the race detector makes that server ten times slower
	default:
		parallel = "8"
	}
	_ = flag.Set("test.parallel", parallel)
	// The goroutines that run now belong to the backend, not to a test.
	background := goleak.IgnoreCurrent()
	code := m.Run()
	for _, stop := range after {
		stop()
	}
	if code == 0 {
		code = leakCheck(background)
	}
	shared.close()
	return code
}

// leakCheck gives goroutines that are about to end several seconds: for that long, cluster clients
// of rueidis keep timers, and connections to nodes that they queried for the topology.
func leakCheck(background goleak.Option) int {
	// If the receiver of a toxiproxy link goes away while bytes are in flight to it, the goroutines
	// that move them never end.
	carrier := goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*ToxicStub).Run")
	reader := goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicLink).read")
	writer := goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicLink).write")
	for end := time.Now().Add(leakPatience); ; {
		err := goleak.Find(background, carrier, reader, writer)
		if err == nil {
			return 0
		}
		if time.Now().After(end) {
			fmt.Printf("rig: the tests left goroutines behind: %s\n", strings.ReplaceAll(err.Error(), "\n", " | ")) // test.sh shows it
			return 1
		}
	}
}

const leakPatience = 10 * time.Second
