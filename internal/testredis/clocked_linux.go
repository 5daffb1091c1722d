package testredis

import (
	"context"
	_ "embed"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Real starts redis-server or valkey-server, or the program that LATCHKEY_TEST_MODEL_SERVER names,
// with a wall clock that the test moves. If there is no server, without says why.
func Real(t *testing.T) (s *Clocked, without string) {
	t.Helper()
	program, err := serverProgram()
	if err != nil {
		return nil, "no server: " + err.Error()
	}
	dir := t.TempDir()
	code, err := clockLibrary()
	if err != nil {
		return nil, fmt.Sprintf("no C compiler for the clock of the server: %v", err)
	}
	library := filepath.Join(dir, "clock.so")
	check(t, os.WriteFile(library, code, 0o600))
	s = &Clocked{Name: filepath.Base(program), Network: "unix", Address: filepath.Join(dir, "socket"), Pause: 10}
	s.Set = fileClock(t, filepath.Join(dir, "clock"))
	s.Set(Epoch)
	s.start(t, program, dir, library)
	s.connect(t)
	// Redis 8 expires a key in the background in the last ms of its time, but on access only after
	// it. Without the background, the time of a step alone decides. On the embedded server keys
	// expire early.
	s.Must("DEBUG", "SET-ACTIVE-EXPIRE", "0")
	s.Full = func(on bool) {
		limit := "0"
		if on {
			limit = "1"
		}
		s.Must("CONFIG", "SET", "maxmemory", limit)
	}
	if !s.obeys() {
		return nil, s.Name + " does not take its time from the functions of the C library"
	}
	return s, ""
}

//go:embed testdata/clock.c
var clockCode string

// clockLibrary compiles the clock of the servers, once for all tests.
var clockLibrary = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "latchkey-clock")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	library := filepath.Join(dir, "clock.so")
	compiler := exec.CommandContext(context.Background(),
		"cc", "-shared", "-fPIC", "-O2", "-o", library, "-x", "c", "-")
	compiler.Stdin = strings.NewReader(clockCode)
	out, err := compiler.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w %s", err, out)
	}
	return os.ReadFile(library)
})

// start starts the program with the library preloaded, and waits until it listens.
func (s *Clocked) start(t *testing.T, program, dir, library string) {
	t.Helper()
	options := []string{"--port", "0", "--unixsocket", s.Address, "--save", "", "--appendonly", "no", "--dir", dir}
	command := exec.CommandContext(context.Background(), program, append(options, debugOptions(t, program)...)...)
	command.Env = append(os.Environ(), "LD_PRELOAD="+library, "LATCHKEY_TEST_CLOCK="+filepath.Join(dir, "clock"))
	command.Stdout, command.Stderr = io.Discard, io.Discard
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	check(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		conn, err := new(net.Dialer).DialContext(context.Background(), s.Network, s.Address)
		if err == nil {
			_ = conn.Close()
			return
		}
		if time.Now().After(end) {
			t.Fatal("the server does not start: ", err)
		}
	}
}

// debugOptions returns the options that let a server obey DEBUG. Redis 6.2 obeys it without them,
// and does not know them.
func debugOptions(t *testing.T, program string) []string {
	t.Helper()
	version, err := versionOf(program)
	check(t, err)
	if strings.Contains(version, " v=6.") {
		return nil
	}
	return []string{"--enable-debug-command", "yes"}
}

// versions remembers what servers say about their versions.
var versions sync.Map

func versionOf(program string) (string, error) {
	if known, is := versions.Load(program); is {
		return known.(string), nil
	}
	version, err := exec.CommandContext(context.Background(), program, "--version").Output()
	versions.Store(program, string(version))
	return string(version), err
}

func serverProgram() (string, error) {
	if name := os.Getenv("LATCHKEY_TEST_MODEL_SERVER"); name != "" {
		return exec.LookPath(name)
	}
	program, err := exec.LookPath("redis-server")
	if err != nil {
		program, err = exec.LookPath("valkey-server")
	}
	return program, err
}

// fileClock returns a clock in a file, as testdata/clock.c reads it.
func fileClock(t *testing.T, name string) func(micros int64) {
	t.Helper()
	check(t, os.WriteFile(name, make([]byte, 8), 0o600))
	file, err := os.OpenFile(name, os.O_RDWR, 0)
	check(t, err)
	defer func() { _ = file.Close() }()
	page, err := syscall.Mmap(int(file.Fd()), 0, 8, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	check(t, err)
	t.Cleanup(func() { _ = syscall.Munmap(page) })
	return func(micros int64) { binary.NativeEndian.PutUint64(page, uint64(micros)) }
}

// obeys reports whether the server's time is what the test sets.
func (s *Clocked) obeys() bool {
	for _, at := range []int64{Epoch + 7_000_000, Epoch} {
		s.Set(at)
		now, is := s.Must("TIME").([]any)
		if !is || now[0] != strconv.FormatInt(at/1_000_000, 10) || now[1] != strconv.FormatInt(at%1_000_000, 10) {
			return false
		}
	}
	return true
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
