package interop

import (
	"os"
	"sync"
	"testing"
)

// sharedJVMs are the drivers that all tests share, one for each version.
var sharedJVMs = struct {
	sync.Mutex
	dir  string
	jvms map[string]*jvm
}{jvms: map[string]*jvm{}}

// sharedJVM returns the driver for a version, and starts it on first use.
func sharedJVM(t *testing.T, version string) *jvm {
	t.Helper()
	driverFor(t, version) // may skip the test
	sharedJVMs.Lock()
	defer sharedJVMs.Unlock()
	j := sharedJVMs.jvms[version]
	if j == nil {
		j = launch(t, version, sharedDir(t))
		sharedJVMs.jvms[version] = j
	}
	return j
}

// sharedDir returns a folder that outlives the first test that needs it.
func sharedDir(t *testing.T) string {
	t.Helper()
	if sharedJVMs.dir == "" {
		dir, err := os.MkdirTemp("", "latchkey-interop-") //nolint:usetesting // other tests use it later
		if err != nil {
			t.Fatal(err)
		}
		sharedJVMs.dir = dir
	}
	return sharedJVMs.dir
}

func killSharedJVMs() {
	for _, j := range sharedJVMs.jvms {
		j.kill()
	}
	_ = os.RemoveAll(sharedJVMs.dir)
}
