// Package examples_test runs each example and checks its output.
package examples_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// printed has the output of each example that runs to its end on one server.
var printed = map[string]string{
	"buildslots": `two slots are free, and no build takes them out of turn: true
release builds, slots: 3
docs builds, slots: 2
fix builds, slots: 2
lint builds, slots: 1
nightly has left the queue: true
`,
	"cache": `4 pods read version 1, built 1 time
a reader cannot become a writer: true
`,
	"cron": `run 1: 1 of 3 pods did the job, 2 left it to another, 0 lost the lock
run 2: 0 of 1 pods did the job, 0 left it to another, 1 lost the lock
`,
	"fencing": `the account is in SQLite
the first pod is paused for longer than its lease
the first pod learns that it lost the lock: true
the database refuses its write: true
the balance is 50
`,
	"idempotent": `the payments are in SQLite
503 repeat the request
an earlier run has paid: true
200 paid 30
200 paid 30
the balance is 70
`,
	"leader": `the first leader resigns: true
everybody finds the second leader: true
it is deposed, and stops: true
the terms increase: true
`,
	"phases": `phase 1 is done: [3 5 4]
a worker dies in phase 2
phase 2 is done: [8 9 7]
phase 3 is done: [17 16 15]
both other workers get an error: true
`,
	"startup": `cache is up, 1 to go
cache is up again after a restart, which counts once, 1 to go
database is up, 0 to go
the latch let 3 workers in
without a cache, the latch stays closed: true
`,
	"tickets": `dan arrives as number 1
ada arrives as number 2
cleo arrives as number 3
ben arrives as number 4
eve has left the queue: true
the desk opens
dan gets ticket 1
ada gets ticket 2
cleo gets ticket 3
ben gets no ticket
`,
	"transfer": `ada has 90, ben has 110
a transfer of too much is refused: true
ben is locked elsewhere, and ada is free: true
`,
	"workerpool": `12 jobs are done, at most three at once: true
no permit is free: true
the permit of the worker that hung was recovered: true
`,
}

// besides has the examples with tests of their own.
var besides = []string{"kubernetes", "tls", "unittest"}

// limit ends an example that hangs. Each takes a second or two.
const limit = time.Minute

func TestExamples(t *testing.T) {
	servers := map[string]string{"embedded": "LATCHKEY_REDIS="}
	if _, err := exec.LookPath("redis-server"); err == nil {
		servers["redis"] = "LATCHKEY_REDIS=" + redis(t)
	}
	if os.Getenv("LATCHKEY_SQL") != "" { // see .ci/with-postgres
		for _, name := range []string{"fencing", "idempotent"} {
			printed[name] = strings.Replace(printed[name], "SQLite", "PostgreSQL", 1)
		}
		delete(servers, "redis") // both would use the one table
	}
	for name, want := range printed {
		for server, variable := range servers {
			t.Run(name+"/"+server, func(t *testing.T) {
				t.Parallel()
				if got := output(t, command(t, filepath.Join(programs, name), variable)); got != want {
					t.Errorf("it printed\n%s\nwant\n%s", got, want)
				}
			})
		}
	}
}

// Each example has a test, and a line on the page.
func TestNamesAndTests(t *testing.T) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		name := entry.Name()
		if !entry.IsDir() || name == "internal" {
			continue
		}
		if _, found := printed[name]; !found && !slices.Contains(besides, name) {
			t.Errorf("no test runs the example %s", name)
		}
		if !strings.Contains(string(page), "["+name+"]("+name+"/") {
			t.Errorf("README.md does not name %s", name)
		}
	}
}

// programs is the folder with the compiled examples.
var programs string

func TestMain(m *testing.M) {
	os.Exit(compiled(m.Run))
}

// compiled runs the tests with all examples compiled.
func compiled(run func() int) int {
	folder, err := os.MkdirTemp("", "examples")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	programs = folder
	build := exec.CommandContext(context.Background(), "go", "build", "-ldflags=-s -w", "-o", folder+string(filepath.Separator), "./...")
	if text, err := build.CombinedOutput(); err != nil {
		panic(string(text))
	}
	return run()
}

// command returns a command that ends with the test, with one more variable in its environment.
func command(t *testing.T, program, variable string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	c := exec.CommandContext(ctx, program)
	c.Env = append(os.Environ(), variable)
	return c
}

// output runs a program, which must succeed, and returns its output.
func output(t *testing.T, c *exec.Cmd) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil {
		t.Fatalf("%v: %v\n%s%s", c.Args, err, &stdout, &stderr)
	}
	return strings.ReplaceAll(stdout.String(), "\r\n", "\n")
}

// redis starts a server and returns its URL.
func redis(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "redis") //nolint:usetesting // t.TempDir is too long for the name of a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	socket := filepath.Join(folder, "socket")
	server := exec.CommandContext(context.Background(), "redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--dir", folder)
	start(t, server)
	await(t, func() bool {
		_, err := os.Stat(socket)
		return err == nil
	})
	return "unix://" + socket
}

// start starts a program, and kills it when the test ends.
func start(t *testing.T, c *exec.Cmd) {
	t.Helper()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
}

// await waits until holds returns true.
func await(t *testing.T, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not happen")
		}
	}
}
