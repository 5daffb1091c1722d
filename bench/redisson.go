package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// redisson is Redisson in a Java virtual machine, which runs the same workloads as this program.
// This program reads the counters of the server.
type redisson struct{}

func (redisson) Name() string { return "redisson" }

func (redisson) About() string {
	return "Redisson " + redissonVersion() + " in a JVM, defaults (RLock, RFairLock, RReadWriteLock, RSemaphore, RRateLimiter); " +
		"few connections and shared threads in clients-*"
}

// Open fails: there is no client in this process.
func (redisson) Open(context.Context, string, time.Duration) (Client, error) {
	return nil, errors.New("the clients of Redisson run in another process")
}

// javaWarmup is the warm-up of a JVM, as a multiple of the measured time. A JVM compiles code that
// runs often; with the default time, its rates no longer grow after this warm-up.
const javaWarmup = 8

// Run runs the workload of the order in a JVM.
func (redisson) Run(e *env) (Metrics, error) {
	command := exec.CommandContext(e.ctx, "java", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
		"-cp", filepath.Join(e.Java, "classes")+string(os.PathListSeparator)+filepath.Join(e.Java, "lib", "*"), "bench.Main",
		e.Workload, e.Addr, inMillis(javaWarmup*e.Time), inMillis(e.Time), inMillis(e.Lease), strconv.Itoa(e.Many))
	var stderr bytes.Buffer
	command.Stderr = &stderr
	input, err := command.StdinPipe() // the JVM ends when it is closed
	if err != nil {
		return nil, err
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	m, err := readJava(e, output)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("the JVM exited: %s", strings.TrimSpace(stderr.String()))
	}
	// The result of the JVM counts, not how it ends.
	_ = input.Close()
	_ = command.Process.Kill()
	_ = command.Wait()
	return m, err
}

func inMillis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// readJava reads the lines that Main.java describes, and takes the counters at "begin" and "end".
func readJava(e *env, output io.Reader) (Metrics, error) {
	var from, to counters
	var err error
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case "begin":
			from, err = e.count()
		case "end":
			to, err = e.count()
		case "error":
			return nil, errors.New(rest)
		case "result":
			return javaResult(rest, from, to)
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, io.ErrUnexpectedEOF
}

func javaResult(text string, from, to counters) (Metrics, error) {
	figures := Metrics{}
	if err := json.Unmarshal([]byte(text), &figures); err != nil {
		return nil, err
	}
	m := cost(from, to, figures["grants"])
	for name, value := range figures {
		m[name] = value
	}
	m["connections"] = to.connections - 1 // without that of this program
	return m, nil
}
