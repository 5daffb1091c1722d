package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// Each measurement runs in a child process of its own, so that no peer can disturb another by its
// heap, its goroutines, a panic or a hang. A process with orderVariable in its environment is such
// a child.
const orderVariable = "LATCHKEY_BENCH_ORDER"

// childLimit is how long a child may take in addition to multiples of the measured time and to the
// lease.
const childLimit = 30 * time.Second

// A result is the result of a child. If Error is set, Metrics may still have overlaps.
type result struct {
	Metrics Metrics `json:",omitempty"`
	Missing bool    `json:",omitempty"` // the peer has no such lock
	Error   string  `json:",omitempty"`
}

// limit is how long the child may take.
func (o order) limit() time.Duration { return childLimit + 20*o.Time + o.Lease }

// measure starts a child that executes an order. It kills the child after the limit.
func measure(ctx context.Context, o order, limit time.Duration) result {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	text, err := json.Marshal(o)
	if err != nil {
		return result{Error: err.Error()}
	}
	program, err := os.Executable()
	if err != nil {
		return result{Error: err.Error()}
	}
	command := exec.CommandContext(ctx, program)
	command.Env = append(os.Environ(), orderVariable+"="+string(text))
	command.WaitDelay = time.Second // a grandchild may keep the pipes open
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return result{Error: "killed: no result within " + limit.String()}
	}
	return parseResult(output, err, stderr.String())
}

// parseResult reads the last line of the output. If there is no result, it reports the first line
// of stderr, which is the message of a panic.
func parseResult(output []byte, ended error, stderr string) result {
	lines := bytes.Split(bytes.TrimSpace(output), []byte("\n"))
	var r result
	if err := json.Unmarshal(lines[len(lines)-1], &r); err == nil {
		return r
	}
	why, _, _ := strings.Cut(strings.TrimSpace(stderr), "\n")
	return result{Error: fmt.Sprintf("no result (%v): %s", ended, why)}
}

// child executes the order and writes the result. It ends the process without waiting for
// goroutines that the workload has left behind.
func child(text string) {
	var r result
	m, err := execute(text)
	switch {
	case errors.Is(err, errMissing):
		r.Missing = true
	case err != nil:
		r.Metrics, r.Error = m, err.Error()
	default:
		r.Metrics = m
	}
	// Other packages may have written to stdout without ending their line.
	if _, err := os.Stdout.WriteString("\n"); err != nil {
		os.Exit(1)
	}
	if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func execute(text string) (Metrics, error) {
	e := &env{ctx: context.Background()}
	if err := json.Unmarshal([]byte(text), &e.order); err != nil {
		return nil, err
	}
	var err error
	if e.peer, err = peerNamed(e.Peer); err != nil {
		return nil, err
	}
	if e.server, err = rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{e.Server}, DisableCache: true}); err != nil {
		return nil, err
	}
	if r, ok := e.peer.(Runner); ok {
		return r.Run(e)
	}
	for _, w := range workloads() {
		if w.Name == e.Workload {
			return w.Run(e)
		}
	}
	for _, g := range growths() {
		if g.Name == e.Workload {
			return grow(e, g)
		}
	}
	return nil, fmt.Errorf("no workload %q", e.Workload)
}

func peerNamed(name string) (Peer, error) {
	for _, p := range peers() {
		if p.Name() == name {
			return p, nil
		}
	}
	return nil, fmt.Errorf("no peer %q", name)
}
