package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
)

const (
	// killed begins the status of a dead worker whose lease has not ended yet.
	killed = "KILLED"
	// insideWord is what the victim writes when it holds the lock or permit.
	insideWord = "inside"
	// patience is the extra time that an expected event may take on a busy machine.
	patience = 20 * time.Second
)

// victimCommand is the worker that dies. The demo starts it as a process of its
// own, because only a process can be killed.
func victimCommand() *cli.Command {
	return &cli.Command{
		Name:   "demo-victim",
		Usage:  "part of the demo",
		Hidden: true,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "lock"},
			&cli.StringFlag{Name: "pool"},
			&cli.DurationFlag{Name: "lease"},
		},
		Action: beVictim,
	}
}

// beVictim acquires the lock or permit, writes insideWord, and holds it until it is
// killed. It ends when its standard input is closed, as it is when the demo is gone.
func beVictim(ctx context.Context, cmd *cli.Command) error {
	client, err := connect(ctx, cmd, latchkey.Options{Lease: cmd.Duration("lease"), Label: latchkey.NoLabel})
	if err != nil {
		return err
	}
	defer closeClient(client)
	var d door = lockDoor{Locker: client.NewLock(cmd.String("lock"))}
	if pool := cmd.String("pool"); pool != "" {
		d = permitDoor{permitPool: client.NewPermitSemaphore(pool)}
	}
	g, err := d.enter(ctx)
	if err != nil {
		return libraryError(err)
	}
	fmt.Println(insideWord)
	_, _ = io.Copy(io.Discard, os.Stdin)
	return release(g)
}

// accident is the death of a worker that holds a lock or permit, and the return of
// that lock or permit.
type accident struct {
	stage *stage
	prize prize

	mu     sync.Mutex
	status string
	after  time.Duration // between the death and the return
	back   bool
}

func newAccident(s *stage, p prize) *accident {
	return &accident{stage: s, prize: p, status: "not started yet"}
}

// watch lets a crew work and the accident happen, and shows both, until the time of
// the act is over and the prize is free again.
func (a *accident) watch(ctx context.Context, c *crew) error {
	c.start(ctx)
	ctx, cancel := context.WithCancel(ctx)
	happened := make(chan error, 1)
	go func() {
		defer close(happened)
		happened <- a.happen(ctx, c.gauge)
	}()
	defer func() {
		cancel()
		for range happened { // until happen has returned
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
			a.stage.tell("%s", a.story())
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
	return c.finish()
}

// happen runs the accident in its own goroutine: first a quiet time, then the
// death, then the return.
func (a *accident) happen(ctx context.Context, g *gauge) error {
	if err := pause(ctx, a.stage.duration/4); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, a.prize.stay+a.stage.lease+patience)
	defer cancel()
	died, next, err := a.kill(ctx, g)
	if err != nil {
		return exitWith(exitSoftware, "%s: %w", a.name(), err)
	}
	return a.awaitReturn(ctx, died, next)
}

// kill starts the victim, waits until it is inside, and kills it there. The gauge
// counts the victim only while it is certainly inside, so the victim leaves the
// gauge right before its death.
func (a *accident) kill(ctx context.Context, g *gauge) (died time.Time, next <-chan time.Time, err error) {
	victim, err := startVictim(ctx, a.stage, a.prize)
	if err != nil {
		return died, nil, err
	}
	defer victim.end()
	a.set("waiting for " + a.prize.one)
	if err := victim.awaitInside(); err != nil {
		return died, nil, err
	}
	g.enter()
	a.set("inside")
	_ = pause(ctx, a.prize.stay) // an interruption also ends awaitReturn
	next = g.leaveUntil(a.prize.room)
	died = time.Now()
	victim.end()
	a.set(killed + " while it held " + a.prize.one)
	return died, next, nil
}

func (a *accident) awaitReturn(ctx context.Context, died time.Time, next <-chan time.Time) error {
	select {
	case entered := <-next:
		a.returned(entered.Sub(died))
		return nil
	case <-ctx.Done():
		a.set(killed + "; the " + a.prize.kind + " has not been recovered")
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil // the proof shows it
		}
		return ctx.Err()
	}
}

func (a *accident) returned(after time.Duration) {
	a.set("killed; the " + a.prize.kind + " was recovered " + seconds(after) + " later")
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

// story describes the accident for the text of the act.
func (a *accident) story() string {
	text := fmt.Sprintf("Worker %d was killed while it held %s.", a.stage.workers+1, a.prize.one)
	if !a.back {
		return text + " The " + a.prize.kind + " has not been recovered."
	}
	return text + fmt.Sprintf(" It was never released: its lease of %v expired, and %s %s after the death.",
		a.stage.lease, a.prize.again, seconds(a.after))
}

// outcome is the last part of the proof.
func (a *accident) outcome() string {
	if !a.back {
		return a.prize.kind + " not back after a death"
	}
	return fmt.Sprintf("%s back in %s", a.prize.kind, seconds(a.after))
}

func (a *accident) rows(c *crew) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	screen := a.stage.screen
	width := screen.width()
	rows := c.rows(width)
	for i, w := range c.workers {
		if a.prize.shared() && w.inside.Load() {
			rows[i] += screen.paint(good, "   in")
		}
	}
	status := strings.TrimRight(fit(fmt.Sprintf("%-9s %s", a.name(), a.status), width-len(margin)), " ")
	if strings.HasPrefix(a.status, killed) {
		status = screen.paint(bad, status)
	}
	rows = append(rows, status)
	if a.prize.shared() {
		inside, room := c.gauge.now(), a.prize.room
		rows = append(rows, fmt.Sprintf("%-9s %s %6d of %d", "inside", bar(int64(inside), int64(room), barWidth(width)), inside, room))
	}
	return rows
}

// summary is the whole state in one line.
func (a *accident) summary(c *crew, elapsed time.Duration) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	text := fmt.Sprintf("%4.1fs  %d %s", elapsed.Seconds(), c.turns(), a.prize.tasks)
	if a.prize.shared() {
		text += fmt.Sprintf(", %d of %d inside", c.gauge.now(), a.prize.room)
	}
	return text + fmt.Sprintf(", longest wait %s; %s: %s", seconds(c.longestWait()), a.name(), a.status)
}

// victim is the process that will be killed.
type victim struct {
	cmd    *exec.Cmd
	output io.Reader
	end    func() // kills it and waits until it is gone; may be called again
}

func startVictim(ctx context.Context, s *stage, p prize) (*victim, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, "demo-victim", "--"+p.flag, p.key, "--lease", s.lease.String())
	// The URL is in the environment, because it may contain a password and every user
	// can read the arguments of a process.
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
		return fmt.Errorf("the worker never acquired the lock (%q, %w)", line, err)
	}
	return nil
}
