package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/latchkey-go/latchkey/latchkeytest"
)

func TestRunLendsTheTerminalToTheCommand(t *testing.T) {
	t.Parallel()
	typing, echo := onTerminal(t, `"$LATCHKEY" run --lock orders -- sh -c 'echo ready; read x; echo "command: $x"'
		read y; echo "shell: $y"`)
	awaitLine(t, echo, "ready")
	typing("one\n")
	awaitLine(t, echo, "command: one")
	typing("two\n")
	awaitLine(t, echo, "shell: two")
}

func TestInterruptFromTheTerminalArrivesOnce(t *testing.T) {
	t.Parallel()
	typing, echo := onTerminal(t, `trap : INT
		"$LATCHKEY" run --lock orders -- sh -c 'trap "n=x\$n" INT; echo ready; read x; read x; echo "caught $n"; exit 3'
		echo "code $?"`)
	awaitLine(t, echo, "ready")
	typing("\x03")
	typing("\n\n")
	awaitLine(t, echo, "caught x")
	awaitLine(t, echo, "code 3")
}

func TestDemoRedrawsOnATerminal(t *testing.T) {
	t.Parallel()
	_, echo := onTerminal(t, `unset LATCHKEY_REDIS; export NO_COLOR=1; "$LATCHKEY" demo --for 1s --lease 2s`)
	awaitLine(t, echo, "\x1b[6A\x1b[J   worker 1")
	awaitLine(t, echo, "PROOF: ")
}

// A command that waits says on a terminal what it waits for, and who holds it.
func TestWaitsAreSaidOnATerminal(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`"$LATCHKEY" run --lock orders --label web-1:42 -- "$LATCHKEY" run --lock orders -- true`: "waiting for orders, held by web-1:42\r\n",
		`"$LATCHKEY" run --lock orders --label web-1:42 -- "$LATCHKEY" lock orders --wait 1h`:     "waiting for orders, held by web-1:42\r\n",
		`"$LATCHKEY" elect orders --label web-1:42 -- "$LATCHKEY" elect orders -- true`:           "waiting for the leadership of orders, held by web-1:42\r\n",
		`"$LATCHKEY" latch wait ready`:                                "waiting for ready, which is not set\r\n",
		`"$LATCHKEY" latch set ready 2; "$LATCHKEY" latch wait ready`: "waiting for ready, remaining count: 2\r\n",
		`"$LATCHKEY" barrier wait phase --parties 3`:                  "waiting for phase, 1 of 3 wait\r\n",
		`pool() { "$LATCHKEY" sem run --name pool --permits 2 --label web-1:42 -- "$@"; }
			pool "$LATCHKEY" sem run --name pool --permits 2 --label web-1:42 -- "$LATCHKEY" sem run --name pool --permits 2 -- true`: "waiting for a permit of pool, held by web-1:42 and 1 more\r\n",
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			_, echo := onTerminal(t, text)
			awaitLine(t, echo, "latchkey: "+want)
		})
	}
}

func TestLockOnATerminal(t *testing.T) {
	t.Parallel()
	typing, echo := onTerminal(t, `trap : INT; "$LATCHKEY" lock deploy; echo "code $?"; "$LATCHKEY" inspect deploy`)
	awaitLine(t, echo, "holding deploy; Ctrl-C releases it\r\n")
	typing("\x03")
	awaitLine(t, echo, "^Ccode 130")
	awaitLine(t, echo, "deploy is free")
}

// onTerminal runs a script in a shell that has a terminal of its own.
func onTerminal(t *testing.T, text string) (typing func(string), echo *bufio.Reader) {
	t.Helper()
	keyboard, screen := openTerminal(t)
	shell := exec.CommandContext(t.Context(), "sh", "-c", text)
	shell.Env = append(os.Environ(), "LATCHKEY="+binary,
		urlEnv+"="+latchkeytest.NewServer(t).URL(), "TERM=xterm", "GORACE=atexit_sleep_ms=0")
	shell.Stdin, shell.Stdout, shell.Stderr = screen, screen, screen
	shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, shell.Start())
	require.NoError(t, screen.Close())
	t.Cleanup(func() {
		_ = keyboard.Close() // hangs up
		_ = shell.Wait()
	})
	return func(keys string) {
		t.Helper()
		_, err := keyboard.WriteString(keys)
		require.NoError(t, err)
	}, bufio.NewReader(keyboard)
}

// openTerminal returns both ends of a pseudo-terminal.
func openTerminal(t *testing.T) (keyboard, screen *os.File) {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	keyboard = os.NewFile(uintptr(fd), "ptmx")
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(t, err)
	screen, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	require.NoError(t, keyboard.SetReadDeadline(time.Now().Add(testPatience)))
	return keyboard, screen
}

func awaitLine(t *testing.T, echo *bufio.Reader, want string) {
	t.Helper()
	for {
		line, err := echo.ReadString('\n')
		require.NoError(t, err, "waiting for %q", want)
		if strings.HasPrefix(line, want) {
			assert.NotContains(t, line, want+"x", "more than was to be")
			return
		}
	}
}
