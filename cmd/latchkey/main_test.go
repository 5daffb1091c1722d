package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/latchkeytest"
)

// binary is the real program, built once.
var binary string

func TestMain(m *testing.M) {
	os.Exit(withBinary(m.Run))
}

func withBinary(run func() int) int {
	dir, err := os.MkdirTemp("", "latchkey")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	heedSignals()
	binary = filepath.Join(dir, "latchkey")
	if err := buildBinary(binary, buildFlags...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return run()
}

func buildBinary(path string, flags ...string) error {
	output, err := exec.Command("go", append(append([]string{"build"}, flags...), "-o", path, ".")...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s%w", output, err)
	}
	return nil
}

// heedSignals makes signals effective that nohup or a background job has made
// ignored. The tests trap some of them, and a shell cannot trap a signal that its
// parent ignores.
func heedSignals() {
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
}

// testPatience is far longer than anything here takes, so that a hang fails in time.
const testPatience = 2 * time.Minute

// long skips a test that takes seconds, with -short.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("a long one: not with -short")
	}
}

// invocation is one run of the program.
type invocation struct {
	*exec.Cmd
	t      *testing.T
	out    *bufio.Reader
	outEnd io.Closer
	in     io.WriteCloser
	stderr syncBuffer
}

// syncBuffer may be read while the program still writes.
type syncBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// invoke starts the program on a server. It is killed if it outlives the test.
func invoke(t *testing.T, server *latchkeytest.Server, args ...string) *invocation {
	t.Helper()
	url := ""
	if server != nil {
		url = server.URL()
	}
	return invokeAt(t, url, args...)
}

// invokeAt starts the program on the server at a URL.
func invokeAt(t *testing.T, url string, args ...string) *invocation {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testPatience)
	t.Cleanup(cancel)
	i := &invocation{Cmd: exec.CommandContext(ctx, binary, args...), t: t}
	// Without this, the race detector makes each run take a second longer.
	i.Env = append(os.Environ(), urlEnv+"="+url, tokenEnv+"=", permitEnv+"=", "LATCHKEY="+binary, "GORACE=atexit_sleep_ms=0")
	i.Stderr = &i.stderr
	i.pipes()
	require.NoError(t, i.Start())
	return i
}

func (i *invocation) pipes() {
	stdout, err := i.StdoutPipe()
	require.NoError(i.t, err)
	i.out, i.outEnd = bufio.NewReader(stdout), stdout
	i.in, err = i.StdinPipe()
	require.NoError(i.t, err)
}

// line waits for the next line of output.
func (i *invocation) line() string {
	i.t.Helper()
	defer i.limit()()
	line, err := i.out.ReadString('\n')
	require.NoError(i.t, err, "no line came; standard error: %s", &i.stderr)
	return strings.TrimSuffix(line, "\n")
}

// limit ends a read of output that never comes. It returns a function that lifts the
// limit. A command that the program failed to end keeps its output open.
func (i *invocation) limit() func() bool {
	return time.AfterFunc(testPatience, func() { _ = i.outEnd.Close() }).Stop
}

// result has the exit code and the output of an invocation.
type result struct {
	code           int
	stdout, stderr string
}

// end closes standard input and waits for the end of the program and of all
// processes that have its output open.
func (i *invocation) end() result {
	i.t.Helper()
	require.NoError(i.t, i.in.Close())
	defer i.limit()()
	stdout, err := io.ReadAll(i.out)
	require.NoError(i.t, err, "somebody still has the output open")
	err = i.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		require.NoError(i.t, err)
	}
	return result{i.ProcessState.ExitCode(), string(stdout), i.stderr.String()}
}

func latchkeyCLI(t *testing.T, server *latchkeytest.Server, args ...string) result {
	t.Helper()
	return invoke(t, server, args...).end()
}

// eventually polls a condition that has no event to wait for.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, testPatience, 5*time.Millisecond, what)
}

// rawTo talks to the server without the library.
func rawTo(t *testing.T, server *latchkeytest.Server) rueidis.Client {
	t.Helper()
	client, err := rawClient(server.URL())
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}

func isLocked(t *testing.T, server *latchkeytest.Server, name string) bool {
	t.Helper()
	seen, err := server.Client().NewLock(name).Inspect(t.Context())
	require.NoError(t, err)
	return seen.Locked()
}

// unnamed returns a client without a label, so that its owners are shown by id.
func unnamed(server *latchkeytest.Server) *latchkey.Client {
	return server.Client(latchkey.Options{Label: latchkey.NoLabel})
}

func hold(t *testing.T, lock latchkey.Locker) *latchkey.Hold {
	t.Helper()
	held, err := lock.TryLock(t.Context())
	require.NoError(t, err)
	return held
}

func TestMistakesOnTheCommandLine(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"unknown command":      {"locks", "orders"},
		"unknown global flag":  {"--nope"},
		"unknown flag":         {"run", "--nope"},
		"bad duration":         {"run", "--lock", "orders", "--wait", "soon", "--", "true"},
		"no lock":              {"run", "--", "true"},
		"two locks":            {"run", "--lock", "orders", "invoices", "--", "true"},
		"no command after it":  {"run", "orders"},
		"no dashes after it":   {"run", "orders", "true"},
		"no command":           {"run", "--lock", "orders"},
		"no dashes":            {"run", "--lock", "orders", "ls", "-l"},
		"late dashes":          {"run", "--lock", "orders", "ls", "--", "-l"},
		"negative wait":        {"run", "--lock", "orders", "--wait=-1s", "--", "true"},
		"no lease":             {"run", "--lock", "orders", "--lease", "0s", "--", "true"},
		"short lease":          {"run", "--lock", "orders", "--lease", "1us", "--", "true"},
		"read and write":       {"run", "--lock", "orders", "--read", "--write", "--", "true"},
		"fair reader":          {"run", "--lock", "orders", "--read", "--fair", "--", "true"},
		"wait and no wait":     {"run", "--lock", "orders", "--wait", "1s", "--no-wait", "--", "true"},
		"cron nothing":         {"cron"},
		"cron no name":         {"cron", "--", "true"},
		"cron two names":       {"cron", "orders", "invoices", "--", "true"},
		"cron no command":      {"cron", "orders", "--"},
		"cron no dashes":       {"cron", "orders", "ls"},
		"cron no time":         {"cron", "--at-least", "0s", "orders", "--", "true"},
		"cron bad code":        {"cron", "--conflict-exit-code", "256", "orders", "--", "true"},
		"cron no lease":        {"cron", "--lease", "0s", "orders", "--", "true"},
		"bad lock name":        {"run", "--lock", "{}", "--", "true"},
		"bad URL":              {"--redis", "localhost", "inspect", "orders"},
		"inspect nothing":      {"inspect"},
		"inspect two":          {"inspect", "orders", "invoices"},
		"ls two":               {"ls", "orders", "invoices"},
		"ls both":              {"ls", "orders", "--match", "*"},
		"ls two prefixes":      {"ls", "orders", "--prefix", "orders"},
		"lock nothing":         {"lock"},
		"lock with a command":  {"lock", "orders", "--", "true"},
		"lock both sides":      {"lock", "orders", "--read", "--write"},
		"completion what":      {"completion", "csh"},
		"sem delete nothing":   {"sem", "delete"},
		"sem release no id":    {"sem", "release", "--force", "pool"},
		"sem release unforced": {"sem", "release", "pool", "42b1f7f3c6ed0f1c9ad6fe14f8c3e5a7"},
		"waiters nothing":      {"waiters"},
		"watch nothing":        {"watch"},
		"watch too often":      {"watch", "--every", "1ms", "orders"},
		"watch bad name":       {"watch", "{}"},
		"check something":      {"check", "orders"},
		"top without a tty":    {"top"},
		"top too often":        {"top", "--every", "1ms"},
		"unlock nothing":       {"unlock", "--force"},
		"unlock unforced":      {"unlock", "orders"},
		"elect nothing":        {"elect", "orders"},
		"elect no name":        {"elect", "--", "true"},
		"elect no command":     {"elect", "orders", "--"},
		"elect no dashes":      {"elect", "orders", "true"},
		"elect two":            {"elect", "orders", "invoices", "--", "true"},
		"leader nothing":       {"leader"},
		"leader both":          {"leader", "orders", "--json", "--value"},
		"sem what":             {"sem", "orders"},
		"sem flag":             {"sem", "--nope"},
		"sem run no name":      {"sem", "run", "--permits", "2", "--", "true"},
		"sem run two names":    {"sem", "run", "--name", "orders", "invoices", "--permits", "2", "--", "true"},
		"sem run set what":     {"sem", "run", "orders", "--set", "--", "true"},
		"sem run of none":      {"sem", "run", "--name", "orders", "--permits", "0", "--", "true"},
		"sem run too many":     {"sem", "run", "--name", "orders", "--permits", "9999999999", "--", "true"},
		"sem run nothing":      {"sem", "run", "--name", "orders", "--permits", "2"},
		"sem run no dashes":    {"sem", "run", "--name", "orders", "--permits", "2", "ls", "-l"},
		"sem run bad name":     {"sem", "run", "--name", "{}", "--permits", "2", "--", "true"},
		"sem inspect nothing":  {"sem", "inspect"},
		"sem set nothing":      {"sem", "set", "orders"},
		"sem set a word":       {"sem", "set", "orders", "many"},
		"sem set negative":     {"sem", "set", "orders", "-1"},
		"latch what":           {"latch", "orders"},
		"latch set nothing":    {"latch", "set", "orders"},
		"latch set a word":     {"latch", "set", "orders", "many"},
		"latch set zero":       {"latch", "set", "orders", "0"},
		"latch set no time":    {"latch", "set", "orders", "1", "--ttl", "0s"},
		"latch down nothing":   {"latch", "down"},
		"latch down zero":      {"latch", "down", "orders", "--n", "0"},
		"latch down both":      {"latch", "down", "orders", "--n", "1", "--as", "me"},
		"latch down nobody":    {"latch", "down", "orders", "--as", ""},
		"latch wait nothing":   {"latch", "wait"},
		"latch wait negative":  {"latch", "wait", "orders", "--wait=-1s"},
		"latch wait bad name":  {"latch", "wait", "{}"},
		"latch delete two":     {"latch", "delete", "orders", "invoices"},
		"demo of one":          {"demo", "--workers", "1"},
		"demo with argument":   {"demo", "orders"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := latchkeyCLI(t, latchkeytest.NewServer(t), args...)
			assert.Equal(t, exitUsage, got.code)
			assert.Empty(t, got.stdout)
			assertOneLine(t, got.stderr)
		})
	}
}

func TestHelpIsNoMistake(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {"--help"}, {"run", "--help"}, {"top", "--help"}, {"ls", "--help"}, {"watch", "--help"}, {"cron", "--help"}, {"sem"}, {"sem", "run", "--help"}, {"latch"}, {"latch", "wait", "--help"}, {"elect", "--help"}, {"leader", "--help"}, {"demo", "--help"}} {
		got := latchkeyCLI(t, nil, args...)
		assert.Zero(t, got.code)
		assert.Contains(t, got.stdout, "USAGE")
		assert.NotContains(t, got.stdout, "demo-victim")
		assert.Empty(t, got.stderr)
	}
}

func TestServerOutOfReach(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	server.URL()
	server.Stop()
	for _, args := range [][]string{
		{"inspect", "orders"},
		{"unlock", "--force", "orders"},
		{"run", "--lock", "orders", "--", "true"},
		{"elect", "orders", "--", "true"},
		{"leader", "orders"},
		{"sem", "inspect", "orders"},
		{"sem", "set", "orders", "2"},
		{"sem", "run", "--name", "orders", "--permits", "2", "--", "true"},
		{"latch", "set", "orders", "2"},
		{"latch", "down", "orders"},
		{"latch", "wait", "orders"},
		{"latch", "wait", "orders", "--wait", "100ms"},
		{"--redis", server.URL(), "demo"},
	} {
		got := latchkeyCLI(t, server, args...)
		assert.Equal(t, exitUnavailable, got.code, args)
		assert.Empty(t, got.stdout, args)
		assertOneLine(t, got.stderr)
	}
}

// The message for a server that refuses to talk says why, and what to do.
func TestServerThatWantsMoreThanTheURL(t *testing.T) {
	for text, want := range map[string]string{
		`latchkey: "redis://db:6379": NOAUTH HELLO must be called with the client already authenticated`: `"redis://db:6379": NOAUTH: the server requires a password; put it in the URL: redis://:PASSWORD@host`,
		`latchkey: connect "redis://db:6379": server unavailable: read: connection reset by peer`: `"redis://db:6379": server unavailable: read: connection reset by peer ` +
			`(does the server require TLS (rediss://) or a client certificate?)`,
	} {
		var exit *exitError
		require.ErrorAs(t, connectError(fmt.Errorf("%w", stringError(text))), &exit)
		assert.Equal(t, exitUnavailable, exit.code)
		assert.Equal(t, want, exit.Error())
	}
	assert.NoError(t, connectError(nil))
}

// A port that speaks something else stays wrong: there is no advice to try again.
func TestServerThatIsNotRedis(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		"HTTP/1.1 400 Bad Request\r\n\r\n": "this is not Redis (the answer looks like HTTP)",
		"<!DOCTYPE HTML>":                  "this is not Redis (the answer looks like HTML)",
		"SSH-2.0-OpenSSH_9.6\r\n":          "this is not Redis",
	} {
		port, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer port.Close()
		go func() {
			for {
				conn, err := port.Accept()
				if err != nil {
					return
				}
				_, _ = conn.Read(make([]byte, 1)) // the answer to a question
				_, _ = io.WriteString(conn, answer)
			}
		}()
		url := "redis://" + port.Addr().String()
		got := invokeAt(t, url, "inspect", "orders").end()
		assert.Equal(t, result{code: exitUnavailable, stderr: fmt.Sprintf("latchkey: connect %q: %s\n", url, want)}, got)
	}
}

func TestPasswordStaysSecret(t *testing.T) {
	t.Parallel()
	got := latchkeyCLI(t, nil, "--redis", "redis://user:s3cret@127.0.0.1:1", "inspect", "orders")
	assert.Equal(t, exitUnavailable, got.code)
	assert.NotContains(t, got.stderr, "s3cret")
}

func TestVersion(t *testing.T) {
	t.Parallel()
	got := latchkeyCLI(t, nil, "version")
	assert.Zero(t, got.code)
	assert.Regexp(t, `^latchkey \S+ go\S+\n$`, got.stdout)
}

func assertOneLine(t *testing.T, text string) {
	t.Helper()
	assert.True(t, strings.HasPrefix(text, "latchkey: "), text)
	assert.Equal(t, 1, strings.Count(text, "\n"), text)
}
