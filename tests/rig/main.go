package rig

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Main runs the tests of a package: it starts the shared server, says which
// backend it is, runs the tests, stops the server and fails the run when a
// goroutine is left. What tests shared is stopped by the functions in after. In a
// process that was started by a [ChildProgram] it runs that child instead.
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
	// Parallel tests wait for time to pass more than for a processor, of which a topology
	// takes more than a server; with the server in this process they wait for that too.
	// -parallel on the command line, which is read later, still counts.
	parallel := "16"
	switch {
	case shared.able&Speed != 0 && shared.able&Single == 0:
		parallel = "12"
	case shared.able&Speed != 0:
	case RaceDetector:
		parallel = "3" // which makes that server ten times slower
	default:
		parallel = "8"
	}
	_ = flag.Set("test.parallel", parallel)
	// What runs now belongs to the backend, not to a test.
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

// leakCheck gives what is on its way out some seconds: cluster clients of rueidis keep
// connections to nodes that they have asked for the topology, or a timer, for so long.
func leakCheck(background goleak.Option) int {
	// A link of toxiproxy whose receiver goes away while bytes are on their way to it
	// keeps the goroutines that carry them, for ever.
	carrier := goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*ToxicStub).Run")
	reader := goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicLink).read")
	writer := goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicLink).write")
	for end := time.Now().Add(leakPatience); ; {
		err := goleak.Find(background, carrier, reader, writer)
		if err == nil {
			return 0
		}
		if time.Now().After(end) {
			fmt.Fprintln(os.Stderr, "rig: the tests left goroutines behind:", err)
			return 1
		}
	}
}

const leakPatience = 10 * time.Second
