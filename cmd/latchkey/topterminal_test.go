package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/latchkeytest"
)

// pane is a terminal of tmux in which the program runs.
type pane struct {
	t      *testing.T
	socket string
}

// onScreen runs a command line of the shell in a terminal of that width.
func onScreen(t *testing.T, width int, url, line string) *pane {
	t.Helper()
	if !inPath("tmux") {
		t.Skip("tmux is not in PATH: it is the terminal") // .ci/run installs it
	}
	p := &pane{t, filepath.Join(t.TempDir(), "tmux")}
	shell := fmt.Sprintf("export LATCHKEY='%s' %s='%s' GORACE=atexit_sleep_ms=0; %s; echo \"code $?\"; sleep 600", binary, urlEnv, url, line)
	p.tmux("-f", "/dev/null", "new-session", "-d", "-x", strconv.Itoa(width), "-y", "24", shell)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(strings.Join(p.lines(), "\n"))
		}
		_ = exec.Command("tmux", "-S", p.socket, "kill-server").Run()
	})
	return p
}

func (p *pane) tmux(args ...string) string {
	p.t.Helper()
	output, err := p.try(args...)
	require.NoError(p.t, err, "%s", output)
	return output
}

func (p *pane) try(args ...string) (output string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), testPatience)
	defer cancel()
	text, err := exec.CommandContext(ctx, "tmux", append([]string{"-S", p.socket}, args...)...).CombinedOutput()
	return string(text), err
}

// lines returns what the screen shows, or why it cannot be seen: a condition of eventually must not
// end its test.
func (p *pane) lines() []string {
	text, err := p.try("capture-pane", "-p")
	lines := strings.Split(text, "\n")
	if err != nil {
		lines = append(lines, make([]string, 24)...)
		lines[0] += err.Error()
	}
	return lines
}

func (p *pane) keys(keys ...string) {
	p.t.Helper()
	for _, key := range keys {
		p.tmux("send-keys", key)
	}
}

// typeIn types a text as it is.
func (p *pane) typeIn(text string) {
	p.t.Helper()
	p.tmux("send-keys", "-l", text)
}

func inPath(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}

// await waits until the screen contains all texts.
func (p *pane) await(texts ...string) []string {
	p.t.Helper()
	var lines []string
	p.eventually(strings.Join(texts, ", "), func() bool {
		lines = p.lines()
		for _, text := range texts {
			if !strings.Contains(strings.Join(lines, "\n"), text) {
				return false
			}
		}
		return true
	})
	return lines
}

// eventually is for conditions of the screen. Each look at it starts a process, so there are fewer.
func (p *pane) eventually(what string, condition func() bool) {
	p.t.Helper()
	require.Eventually(p.t, condition, testPatience, 50*time.Millisecond, what)
}

// rowOf returns the row of an object without its name, or nil.
func rowOf(lines []string, name string) []string {
	for _, line := range lines {
		if rest, found := strings.CutPrefix(line, name+" "); found {
			return strings.Fields(rest)
		}
	}
	return nil
}

// top shows what the server has, at any width.
func TestTopShowsWhatIsThere(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	client, other := unnamed(server), unnamed(server)
	job := hold(t, client.NewLock("job:1"))
	hold(t, client.NewMutex("job:2"))
	hold(t, client.NewFairLock("fair"))
	hold(t, client.NewRWLock("rw").Reader())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 3 {
		go func() { _, _ = other.NewFairLock("fair").Lock(ctx) }()
	}
	_, err := client.NewSemaphore("pool").TrySetPermits(ctx, 4)
	require.NoError(t, err)
	_, err = client.NewCountDownLatch("ready").TrySetCount(ctx, 2)
	require.NoError(t, err)

	p := onScreen(t, 80, server.URL(), `"$LATCHKEY" top --every 200ms`)
	p.await("6 objects, 4 locked, 3 waiting")
	for width, head := range map[int]string{
		60:  "HOLDERS  WAITERS▼ HELD BY",
		80:  "KIND      HOLDERS  WAITERS▼ TTL    HELD BY",
		120: "KIND      HOLDERS  WAITERS▼ TTL    HELD   HELD BY",
	} {
		p.tmux("resize-window", "-x", strconv.Itoa(width), "-y", "24")
		lines := p.await(head, "6 objects, 4 locked, 3 waiting",
			"fair ", "job:1 ", "job:2 ", "pool ", "ready ", "rw ")
		for o, err := range client.Objects(ctx, "*") {
			require.NoError(t, err)
			got := rowOf(lines, o.Name)
			require.NotEmpty(t, got, "%s is not on the screen: %s", o.Name, strings.Join(lines, "\n"))
			want := []string{kindText(o), holdersText(o), strconv.Itoa(o.Waiters())}
			if width == 60 {
				want = want[1:]
			}
			assert.Equal(t, want, got[:len(want)], o.Name)
		}
		for _, line := range lines {
			if strings.HasPrefix(line, "job:1 ") {
				assert.Contains(t, line, job.Owner().String()[:20], "there is room for who holds")
			}
		}
		for _, line := range lines {
			assert.LessOrEqual(t, len([]rune(line)), width)
		}
		assert.Equal(t, "fair", strings.Fields(lines[3])[0], "most waiters first")
		styled := strings.Split(p.tmux("capture-pane", "-e", "-p"), "\n")
		assert.Contains(t, styled[2], "\x1b[1;4mNAME", "the head is underlined")
		assert.Contains(t, styled[3], "7m", "and the first row is the selected one")
		assert.Contains(t, lines[len(lines)-2], "q quit")
	}
	p.tmux("resize-window", "-x", "60", "-y", "24") // the help fits too
	p.keys("n", "n")
	p.eventually("by name, backwards", func() bool { return strings.HasPrefix(p.lines()[3], "rw ") })
	p.keys("/", "job", "Enter")
	p.eventually("the filter", func() bool { return rowOf(p.lines(), "rw") == nil && rowOf(p.lines(), "job:1") != nil })
	p.keys("/", "Escape")
	p.await("ready")
	p.keys("?")
	p.await("how long top has seen", "q quits.", "esc back")
	p.keys("Escape")
	p.await("ready", "? help")
	p.keys("q")
	p.await("code 0")
}

// top takes a lock away only after the question, and only if the answer is y.
func TestTopForcesAfterTheQuestionOnly(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	held := hold(t, unnamed(server).NewLock("orders"))
	p := onScreen(t, 80, server.URL(), `"$LATCHKEY" top --every 200ms`)
	p.await("1 objects, 1 locked")
	for _, no := range []string{"n", "Enter", "Escape", "f", "q", "Y"} {
		p.keys("f")
		p.await("Take orders from "+held.Owner().String()+"? It may be working. y:", "\nyes, other keys: no")
		p.keys(no)
		p.await("nothing was done")
		assert.True(t, isLocked(t, server, "orders"), no)
	}
	p.keys("y") // without a question
	p.keys("Enter")
	p.tmux("resize-window", "-x", "32", "-y", "24")
	p.await("a lock", " unless\n           renewed", "esc back") // a line that is too wide goes on below
	p.tmux("resize-window", "-x", "80", "-y", "24")
	p.await("a lock", "  held by  "+held.Owner().String(), "esc back")
	assert.True(t, isLocked(t, server, "orders"))
	p.keys("f")
	p.await("Take orders from ")
	p.keys("y")
	p.await("orders is unlocked")
	assert.False(t, isLocked(t, server, "orders"))
	p.await("none: free or gone")
	p.keys("C-c")
	p.await("code 0")
}

// While the server does not answer, the rows are faint, and top says how old they are and why. The
// age of the rows grows.
func TestTopWhileTheServerIsDown(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	hold(t, server.Client(latchkey.Options{Lease: time.Hour}).NewLock("orders"))
	p := onScreen(t, 60, server.URL(), `"$LATCHKEY" top --every 200ms`)
	p.await("1 objects, 1 locked")
	styled := func() []string { return strings.Split(p.tmux("capture-pane", "-e", "-p"), "\n") }
	assert.NotContains(t, styled()[3], "\x1b[0;2", "a row that is not faint")
	server.Stop()
	p.await("  FAILED\n1 objects, 1 locked, 0 waiting; ", "s old; server", "refused")
	rows := slices.DeleteFunc(styled(), func(line string) bool { return !strings.Contains(line, "orders ") })
	require.Len(t, rows, 1)
	assert.Contains(t, rows[0], "\x1b[0;2;7m", "faint, and selected")
	for _, age := range []string{"3", "4"} {
		p.await("waiting; " + age)
	}
	server.Restart()
	p.await("1 objects, 1 locked, 0 waiting\n", "every 200ms")
	p.keys("p")
	p.await("  paused\n1 objects, 1 locked, 0 waiting; 2", "s old")
}

// A lock is not taken away if its holder is not the one in the question.
func TestForceFromTheHolderThatWasShown(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	client := server.Client()
	for name, lock := range map[string]latchkey.Locker{
		"lock": client.NewLock("lock"), "mutex": client.NewMutex("mutex"), "rw": client.NewRWLock("rw").Writer(),
	} {
		first := hold(t, lock)
		asked, err := client.Inspect(t.Context(), name)
		require.NoError(t, err)
		require.NoError(t, first.Unlock(t.Context()))
		held, err := forceFrom(t.Context(), client, asked)
		require.NoError(t, err)
		assert.False(t, held, "it is free")

		hold(t, lock)
		_, err = forceFrom(t.Context(), client, asked)
		require.ErrorIs(t, err, errHolderChanged)
		assert.True(t, isLocked(t, server, "lock") || name != "lock")

		asked, err = client.Inspect(t.Context(), name)
		require.NoError(t, err)
		held, err = forceFrom(t.Context(), client, asked)
		require.NoError(t, err)
		assert.True(t, held, name)
	}
}

// The former owner of a lock that is kept does not hold it.
func TestForceFromALockThatIsKept(t *testing.T) {
	t.Parallel()
	client := latchkeytest.NewServer(t).Client()
	lock := client.NewLock("orders")
	first, err := lock.TryLock(t.Context(), latchkey.AtLeast(time.Hour))
	require.NoError(t, err)
	asked, err := client.Inspect(t.Context(), "orders")
	require.NoError(t, err)
	require.NoError(t, first.Unlock(t.Context()))
	_, err = forceFrom(t.Context(), client, asked)
	require.ErrorIs(t, err, errHolderChanged)

	asked, err = client.Inspect(t.Context(), "orders")
	require.NoError(t, err)
	held, err := forceFrom(t.Context(), client, asked)
	require.NoError(t, err)
	assert.True(t, held)
}

// Not all holders of a lock with many holders are shown. The lock can still be forced, unless a new
// holder came.
func TestForceFromManyHolders(t *testing.T) {
	t.Parallel()
	client := latchkeytest.NewServer(t).Client(latchkey.Options{Tuning: latchkey.Tuning{Turn: -1}}) // each reader holds for itself
	reader := client.NewRWLock("orders").Reader()
	for range 100 {
		hold(t, reader)
	}
	found, err := allObjects(t.Context(), client, "orders")
	require.NoError(t, err)
	require.Len(t, found, 1)
	asked := found[0]
	require.True(t, sampled(asked), "%d of %d", len(asked.Holders), asked.HolderCount)
	another := hold(t, reader)
	_, err = forceFrom(t.Context(), client, asked)
	require.ErrorIs(t, err, errHolderChanged)
	require.NoError(t, another.Unlock(t.Context()))
	held, err := forceFrom(t.Context(), client, asked)
	require.NoError(t, err)
	assert.True(t, held)
}

// startRedis starts a server on a socket, and returns its URL.
func startRedis(t *testing.T) string {
	t.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("redis-server is not in PATH: the embedded server looks at all its keys for each command")
	}
	socket := filepath.Join(t.TempDir(), "redis")
	server := exec.Command(program, "--port", "0", "--unixsocket", socket, "--save", "", "--dir", filepath.Dir(socket))
	require.NoError(t, server.Start())
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	url := "unix://" + socket
	eventually(t, "the server is up", func() bool {
		client, err := rawClient(url)
		if err == nil {
			client.Close()
		}
		return err == nil
	})
	return url
}

// manyLocks makes n locks, job:00000 and on, that are held by so many clients with labels.
func manyLocks(t *testing.T, raw rueidis.Client, n, clients int) {
	t.Helper()
	idOf := func(client int) string { return fmt.Sprintf("%08x-0000-8000-8000-000000000000", client) }
	var commands []rueidis.Completed
	for i := range clients {
		record := "latchkey_client:{" + idOf(i)[:18] + "}"
		commands = append(commands, raw.B().Hset().Key(record).FieldValue().FieldValue("label", fmt.Sprintf("worker-%03d", i)).Build())
	}
	for i := range n {
		commands = append(commands, lockCommands(raw, i, fmt.Sprintf("%s:%d", idOf(i%clients), i))...)
	}
	for _, result := range raw.DoMulti(t.Context(), commands...) {
		require.NoError(t, result.Error())
	}
}

// lockCommands makes the lock with that number.
func lockCommands(raw rueidis.Client, i int, owner string) []rueidis.Completed {
	key := fmt.Sprintf("job:%05d", i)
	return []rueidis.Completed{raw.B().Hset().Key(key).FieldValue().FieldValue(owner, "1").Build(),
		raw.B().Pexpire().Key(key).Milliseconds(time.Hour.Milliseconds()).Build()}
}

var (
	tookText  = regexp.MustCompile(`took ([0-9.]+m?s)`)
	callsText = regexp.MustCompile(`cmdstat_(scan|evalsha|eval):calls=([0-9]+)`)
	usedText  = regexp.MustCompile(`used_cpu_(?:user|sys):([0-9.]+)`)
)

// usage is what a server, and a top that watches it, have done so far.
type usage struct {
	scans, scripts int
	processor      time.Duration // of both processes, 0 if that is unknown
}

// usageOf asks a server, and Linux about the process whose number is in the file.
func usageOf(t *testing.T, raw rueidis.Client, pidFile string) (u usage) {
	t.Helper()
	info, err := raw.Do(t.Context(), raw.B().Arbitrary("INFO").Args("everything").Build()).ToString()
	require.NoError(t, err)
	for _, found := range callsText.FindAllStringSubmatch(info, -1) {
		n, err := strconv.Atoi(found[2])
		require.NoError(t, err)
		if found[1] == "scan" {
			u.scans += n
		} else {
			u.scripts += n
		}
	}
	pid, err := os.ReadFile(pidFile)
	require.NoError(t, err)
	stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/stat")
	if err != nil {
		return u
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	for _, ticks := range strings.Fields(after)[11:13] { // in user mode, and in the kernel
		n, err := strconv.Atoi(ticks)
		require.NoError(t, err)
		u.processor += time.Duration(n) * 10 * time.Millisecond
	}
	for _, found := range usedText.FindAllStringSubmatch(info, -1) {
		seconds, err := strconv.ParseFloat(found[1], 64)
		require.NoError(t, err)
		u.processor += time.Duration(seconds * float64(time.Second))
	}
	return u
}

// top refreshes ten thousand locks of five hundred clients in less than a second, with walk, labels
// and drawing. It sends at most a SCAN for 512 keys, a script for 64 objects and one for the labels
// of 64 clients, and, since a SCAN may find fewer, one more script of each kind for each SCAN.
//
// On a busy machine the processor time of top and its server counts, if it is less. It is all that
// a refresh takes on an idle machine, where their round trips take no time. Without the race
// detector, which makes programs many times slower.
func TestTopWithTenThousandLocks(t *testing.T) {
	long(t)
	const n, clients, tries = 10_000, 500, 10
	url := startRedis(t)
	raw, err := rawClient(url)
	require.NoError(t, err)
	defer raw.Close()
	manyLocks(t, raw, n, clients)
	dir := t.TempDir()
	program, pidFile := filepath.Join(dir, "latchkey"), filepath.Join(dir, "pid")
	require.NoError(t, buildBinary(program))
	p := onScreen(t, 120, url, fmt.Sprintf(`sh -c 'echo $$ >%s; exec %s top --every 1h'`, pidFile, program))
	var before usage
	best := time.Duration(math.MaxInt64)
	for i := range tries {
		lines := p.await(fmt.Sprintf("%d objects, %d locked", n+i, n+i), "took ", "job:00000", "worker-000")
		took, err := time.ParseDuration(tookText.FindStringSubmatch(lines[0])[1])
		require.NoError(t, err)
		now := usageOf(t, raw, pidFile)
		scans, scripts, processor := now.scans-before.scans, now.scripts-before.scripts, now.processor-before.processor
		t.Logf("refresh %d took %v, and %v of processor time; %d SCAN, %d scripts", i, took, processor, scans, scripts)
		assert.LessOrEqual(t, scans, 2*(n+clients)/512)
		assert.LessOrEqual(t, scripts, (n+i)/64+clients/64+2*scans)
		if best = min(best, took); processor > 0 {
			best = min(best, processor)
		}
		for _, result := range raw.DoMulti(t.Context(), lockCommands(raw, n+i, "00000001-0000-8000-8000-000000000000:1")...) {
			require.NoError(t, result.Error())
		}
		before = usageOf(t, raw, pidFile)
		p.keys("Space")
		if i > 0 && best < time.Second {
			break
		}
	}
	assert.Less(t, best, time.Second)
	p.keys("n", "n")
	p.await("job:10001")
	p.keys("End")
	p.await("job:00000")
	p.keys("q")
	p.await("code 0")
}
