package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
)

const (
	// insideWord is what the victim writes when it has the lock.
	insideWord = "inside"
	// patience is for a busy machine: how long an expected event may take beyond
	// the time that it needs.
	patience = 20 * time.Second
)

// victimCommand is the worker that dies: the demo starts it as a process of its
// own, because nothing else dies as thoroughly.
func victimCommand() *cli.Command {
	return &cli.Command{
		Name:            "demo-victim",
		Usage:           "part of the demo",
		Hidden:          true,
		HideHelpCommand: true,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "lock"},
			&cli.DurationFlag{Name: "lease"},
		},
		Action: beVictim,
	}
}

// beVictim takes the lock, says so, and keeps it until it is killed. It ends by
// itself when the demo is gone, which closes its standard input.
func beVictim(ctx context.Context, cmd *cli.Command) error {
	client, err := connect(ctx, cmd, latchkey.Options{Lease: cmd.Duration("lease")})
	if err != nil {
		return err
	}
	defer closeClient(client)
	if _, err := client.NewLock(cmd.String("lock")).Lock(ctx); err != nil {
		return libraryError(err)
	}
	fmt.Println(insideWord)
	_, _ = io.Copy(io.Discard, os.Stdin)
	return nil
}

// accident is the death of a worker that holds the lock, and what comes after.
type accident struct {
	stage *stage
	arena *arena
	lock  string

	mu     sync.Mutex
	status string
	after  time.Duration // from the death to the next entry
	back   bool
}

func newAccident(s *stage, arena *arena, lock string) *accident {
	return &accident{stage: s, arena: arena, lock: lock, status: "not here yet"}
}

// watch lets the accident happen and shows the crew meanwhile, until its time is
// over and the lock has come back.
func (a *accident) watch(ctx context.Context, c *crew) error {
	ctx, cancel := context.WithCancel(ctx)
	happened := make(chan error, 1)
	go func() {
		defer close(happened)
		happened <- a.happen(ctx)
	}()
	defer func() {
		cancel()
		for range happened { // until it is closed: nothing of the accident goes on
		}
	}()

	screen := a.stage.screen
	over := time.After(a.stage.duration)
	tick := time.NewTicker(screen.period())
	defer tick.Stop()
	began := time.Now()
	for ended := (<-chan error)(happened); ended != nil || over != nil; {
		select {
		case err := <-ended:
			if err != nil {
				return err
			}
			screen.say("   %s", a.story())
			ended = nil
		case err := <-c.failed:
			return failure(err)
		case <-over:
			over = nil
		case <-tick.C:
			screen.show(a.rows(c), a.summary(c, time.Since(began)))
		}
	}
	screen.show(a.rows(c), a.summary(c, time.Since(began)))
	screen.keep()
	return nil
}

// happen runs in its own goroutine, from the quiet before to the lock's return.
func (a *accident) happen(ctx context.Context) error {
	if err := pause(ctx, a.stage.duration/4); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, a.stage.lease+patience)
	defer cancel()
	died, next, err := a.kill(ctx)
	if err != nil {
		return exitWith(exitSoftware, "%s: %w", a.name(), err)
	}
	return a.awaitReturn(ctx, died, next)
}

// kill starts the victim, waits until it is inside and kills it there. Nobody can
// have entered between its death and the channel that tells who is next.
func (a *accident) kill(ctx context.Context) (died time.Time, next <-chan time.Time, err error) {
	victim, err := startVictim(ctx, a.stage, a.lock)
	if err != nil {
		return died, nil, err
	}
	defer victim.end()
	a.set("waiting for the lock")
	if err := victim.awaitInside(); err != nil {
		return died, nil, err
	}
	a.arena.gauge.enter()
	defer a.arena.gauge.leave()
	next = a.arena.gauge.nextEntry()
	died = time.Now()
	victim.end()
	a.set("KILLED while it held the lock; it will never unlock")
	return died, next, nil
}

func (a *accident) awaitReturn(ctx context.Context, died time.Time, next <-chan time.Time) error {
	select {
	case entered := <-next:
		a.returned(entered.Sub(died))
		return nil
	case <-ctx.Done():
		a.set("KILLED, and the lock has not come back")
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil // the proof tells
		}
		return ctx.Err()
	}
}

func (a *accident) returned(after time.Duration) {
	a.set("killed; the lock came back " + seconds(after) + " later")
	a.mu.Lock()
	defer a.mu.Unlock()
	a.after, a.back = after, true
}

func (a *accident) set(status string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.status = status
}

func (a *accident) name() string { return fmt.Sprintf("worker %d", a.stage.workers+1) }

// story tells what happened, where it happened.
func (a *accident) story() string {
	text := fmt.Sprintf("Worker %d was killed while it held the lock.", a.stage.workers+1)
	if !a.back {
		return text + " The lock has not come back."
	}
	return text + fmt.Sprintf(" Nobody unlocked it:\n   its lease of %v ran out, and the others went on %s after the death.",
		a.stage.lease, seconds(a.after))
}

// outcome ends the proof.
func (a *accident) outcome() string {
	if !a.back {
		return "and the lock did not come back after a worker died"
	}
	return fmt.Sprintf("lock came back %s after a worker died", seconds(a.after))
}

func (a *accident) rows(c *crew) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append(c.rows(), fmt.Sprintf("%-9s %s", a.name(), a.status))
}

// summary is the whole state in one line.
func (a *accident) summary(c *crew, elapsed time.Duration) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return fmt.Sprintf("%4.1fs  %d increments, longest wait %s; %s: %s",
		elapsed.Seconds(), c.turns(), seconds(c.longestWait()), a.name(), a.status)
}

// victim is the process that will be killed.
type victim struct {
	cmd    *exec.Cmd
	output io.Reader
	end    func() // kills it and waits until it is gone; may be called again
}

func startVictim(ctx context.Context, s *stage, lock string) (*victim, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, "demo-victim", "--lock", lock, "--lease", s.lease.String())
	// By the environment, because a URL may contain a password and everybody can
	// read the arguments of a process.
	cmd.Env = append(os.Environ(), urlEnv+"="+s.url)
	cmd.Stderr = os.Stderr
	output, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if _, err := cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	end := sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return &victim{cmd: cmd, output: output, end: end}, nil
}

func (v *victim) awaitInside() error {
	line, err := bufio.NewReader(v.output).ReadString('\n')
	if err != nil || line != insideWord+"\n" {
		return fmt.Errorf("it never had the lock (%q, %w)", line, err)
	}
	return nil
}
