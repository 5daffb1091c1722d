package interop

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// driver is the Java program, compiled against one version of Redisson.
type driver struct {
	dir     string
	missing string // why it is not available here; the tests are skipped
	err     error  // it does not compile; the tests fail
}

// drivers holds the drivers built in this run, by version.
var drivers sync.Map

// driverFor returns the directory of the program for a version of Redisson.
func driverFor(t *testing.T, version string) string {
	t.Helper()
	build, _ := drivers.LoadOrStore(version, sync.OnceValue(func() driver { return buildDriver(version) }))
	d := build.(func() driver)()
	if d.err != nil {
		t.Fatal(d.err)
	}
	if d.missing != "" {
		t.Skip(d.missing)
	}
	return d.dir
}

// buildDriver takes the program from the cache, or lets Maven build it there.
func buildDriver(version string) driver {
	for _, tool := range []string{"java", "mvn"} {
		if _, err := exec.LookPath(tool); err != nil {
			return driver{missing: tool + " is not in PATH: there is no Redisson to test against"}
		}
	}
	home, err := cacheDir(version)
	if err != nil {
		return driver{err: err}
	}
	if _, err := os.Stat(home); err == nil {
		return driver{dir: home}
	}
	return compile(version, home)
}

// cacheDir returns the folder for the program of a version. Its name changes with the sources.
func cacheDir(version string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	err = filepath.WalkDir("driver", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		fmt.Fprintf(sum, "%s %d\n%s", path, len(content), content)
		return err
	})
	return filepath.Join(cache, "latchkey-interop", version+"-"+hex.EncodeToString(sum.Sum(nil))[:12]), err
}

// compile builds in a folder next to home and then renames it, so that home is either complete or
// missing, even if two runs build at once.
func compile(version, home string) driver {
	if err := os.MkdirAll(filepath.Dir(home), 0o755); err != nil {
		return driver{err: err}
	}
	work, err := os.MkdirTemp(filepath.Dir(home), "build-")
	if err != nil {
		return driver{err: err}
	}
	defer func() { _ = os.RemoveAll(work) }()
	out, err := exec.Command("mvn", "-q", "-B", "-f", "driver/pom.xml", "-Dredisson.version="+version, "-Dbuild="+work,
		"compiler:compile", "dependency:copy-dependencies").CombinedOutput()
	switch {
	case err == nil:
		return move(work, home)
	case strings.Contains(string(out), "COMPILATION ERROR"):
		return driver{err: fmt.Errorf("the driver does not compile against Redisson %s:\n%s", version, out)}
	default:
		return driver{missing: fmt.Sprintf("Maven cannot build the driver for Redisson %s: %s", version, firstError(out))}
	}
}

func move(work, home string) driver {
	if err := os.Rename(work, home); err != nil {
		if _, there := os.Stat(home); there != nil {
			return driver{err: err}
		}
	}
	return driver{dir: home}
}

// firstError returns the line in which Maven reports what went wrong.
func firstError(output []byte) string {
	for line := range strings.Lines(string(output)) {
		if text, found := strings.CutPrefix(line, "[ERROR] "); found {
			return strings.TrimSpace(text)
		}
	}
	return "no reason given"
}
