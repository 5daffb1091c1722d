package tests

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/tests/rig"
)

// pollingProgram is a program in another language that repeatedly acquires and releases a mutex
// with a library of that language. It prints "ready" when it is connected, begins when it reads a
// byte, prints the microseconds of each wait, and ends when its input ends.
type pollingProgram struct {
	run      string   // the interpreter, which must be in PATH
	script   string   // in testdata/pollers
	packages []string // the packages that it needs
	install  func(dir string, packages []string) *exec.Cmd
	path     func(dir string) string // the environment variable through which the packages are found
}

var pollingPrograms = map[string]*pollingProgram{
	"redis-py": {
		run: "python3", script: "redis-py.py", packages: []string{"redis==8.1.0"},
		install: func(dir string, packages []string) *exec.Cmd {
			return exec.Command("python3", append([]string{"-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", dir}, packages...)...)
		},
		path: func(dir string) string { return "PYTHONPATH=" + dir },
	},
	"node-redlock": {
		run: "node", script: "node-redlock.js", packages: []string{"redlock@4.2.0", "ioredis@5.8.2"},
		install: func(dir string, packages []string) *exec.Cmd {
			return exec.Command("npm", append([]string{"install", "--silent", "--no-audit", "--no-fund", "--prefix", dir}, packages...)...)
		},
		path: func(dir string) string { return "NODE_PATH=" + filepath.Join(dir, "node_modules") },
	},
}

// installed maps the name of a program to the function that installs its packages once per run.
var installed sync.Map

// packagesOf returns the directory with the packages of a program, or skips the test.
func packagesOf(t *testing.T, who string) string {
	t.Helper()
	type result struct {
		dir string
		err error
	}
	once, _ := installed.LoadOrStore(who, sync.OnceValue(func() result {
		dir, err := pollingPrograms[who].cached(who)
		return result{dir, err}
	}))
	r := once.(func() result)()
	if r.err != nil {
		t.Skipf("%s is not to be had here: %v", who, r.err)
	}
	return r.dir
}

// cached takes the packages from the user's cache, or installs them there. It installs into a
// temporary directory and renames that, so that the packages are complete or absent.
func (p *pollingProgram) cached(who string) (dir string, err error) {
	if _, err := exec.LookPath(p.run); err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(strings.Join(p.packages, " ")))
	dir = filepath.Join(cache, "latchkey-pollers", who+"-"+hex.EncodeToString(sum[:6]))
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	work, err := os.MkdirTemp(filepath.Dir(dir), "install-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(work) }()
	if out, err := p.install(work, p.packages).CombinedOutput(); err != nil {
		return "", fmt.Errorf("installing %v: %w: %s", p.packages, err, bytes.TrimSpace(out))
	}
	err = os.Rename(work, dir)
	if _, there := os.Stat(dir); there == nil {
		return dir, nil // another run may have been faster
	}
	return "", err
}

// poller is a running program.
type poller struct {
	cmd    *exec.Cmd
	input  io.WriteCloser
	output *bufio.Scanner
	stderr bytes.Buffer
}

// startPoller starts a program, and returns when it is connected. The program creates the file door
// while it holds the mutex.
func startPoller(t *testing.T, server *rig.Server, who, name string, hold time.Duration, door string) *poller {
	t.Helper()
	program, dir := pollingPrograms[who], packagesOf(t, who)
	_, port, _ := strings.Cut(server.Addr(), ":")
	p := &poller{cmd: exec.CommandContext(t.Context(), program.run, filepath.Join("testdata", "pollers", program.script),
		port, name, strconv.FormatInt(hold.Milliseconds(), 10), door)}
	p.cmd.Env = append(os.Environ(), program.path(dir))
	p.cmd.Stderr = &p.stderr
	output, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	p.output = bufio.NewScanner(output)
	p.input, err = p.cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	ready := make(chan bool, 1)
	go func() { ready <- p.output.Scan() }()
	if !rig.Await(t, 3*soon, who+" is ready", ready) {
		t.Fatalf("%s has ended: %v", who, p.end())
	}
	return p
}

// end waits for the end of the program.
func (p *poller) end() error {
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(p.stderr.Bytes()))
	}
	return nil
}

// work has the program take part in a contest until the contest is over.
func (p *poller) work(c *contest, worker int) error {
	if _, err := p.input.Write([]byte("\n")); err != nil {
		return errors.Join(err, p.end())
	}
	var ending sync.WaitGroup
	ending.Go(func() {
		for !c.over() {
			rest(5 * time.Millisecond)
		}
		_ = p.input.Close()
	})
	for p.output.Scan() {
		micros, err := strconv.ParseInt(p.output.Text(), 10, 64)
		if err != nil {
			return err
		}
		c.count(worker, time.Duration(micros)*time.Microsecond)
	}
	ending.Wait()
	return p.end()
}

// pollers adds processes of another library to a contest.
func (c *contest) pollers(t *testing.T, server *rig.Server, name, who string, processes int) {
	t.Helper()
	c.door = filepath.Join(t.TempDir(), "inside")
	for range processes {
		p := contender{name: who, goroutines: 1, polls: true}
		if pollingPrograms[who] != nil {
			p.work = startPoller(t, server, who, name, c.hold, c.door).work
		} else {
			p.acquire = redsyncing(t, server, name)
		}
		c.contenders = append(c.contenders, p)
	}
}
