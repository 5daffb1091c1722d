package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/redis/rueidis"
	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/latchkeytest"
)

func demoCommand() *cli.Command {
	return &cli.Command{
		Name:  "demo",
		Usage: "watch workers share a lock and a pool, crash and elect leaders",
		Description: `Several workers, each with its own client, increment one counter in Redis by
reading it and writing it back: first without a lock, then with one. Meanwhile, a
worker is killed while it holds the lock. Then the workers do jobs under a semaphore
that has fewer permits than there are workers, and again one is killed while it
holds a permit. They wait at a latch until all preparations are done. Finally they
elect leaders in turn, and each leader resigns.

The last lines prove or disprove that no increment was lost, that no two workers
held the lock at once, and that no more workers than permits worked at once. They
also prove or disprove that the lock and the permit of the killed workers were
recovered, that no worker passed the latch early, and that no two led at once. If a
proof fails, the exit code is 1. The demo takes half a minute.

Nothing needs to be installed: without --redis and LATCHKEY_REDIS the demo starts its
own server. On your server it uses keys with "latchkey-demo:" in their names and
removes them at the end, except small records of the library that expire within
20 minutes.

  latchkey demo
  latchkey --redis redis://localhost:6379 demo --workers 3 --for 5s`,
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "workers", Usage: "`NUMBER` of workers, in addition to those that are killed", Value: 5, Validator: between(2, 50)},
			&cli.DurationFlag{Name: "for", Usage: "`TIME` of the second act, and of the third", Value: 10 * time.Second,
				Validator: atLeast(time.Second)},
			&cli.DurationFlag{Name: "lease", Usage: "lease of the workers that are killed", Value: 2 * time.Second,
				Validator: atLeast(100 * time.Millisecond)},
		},
		Action: demoAction,
	}
}

// An act shows one thing, and may return a proof.
type act struct {
	title string
	play  func(context.Context, *stage) (*proof, error)
}

var acts = []act{
	{"WITHOUT A LOCK", playWithoutLock},
	{"WITH A LOCK, AND A DEATH", playWithLock},
	{"A POOL WITH A LIMIT, AND A DEATH", playPool},
	{"A COMMON START", playLatch},
	{"LEADERS THAT RESIGN", playElection},
}

// proof is a statement that an act has shown to hold or not.
type proof struct {
	holds bool
	text  string
}

func (p proof) String() string {
	if p.holds {
		return "PROOF: " + p.text
	}
	return "PROOF FAILED: " + p.text
}

// stage has the state that all acts share.
type stage struct {
	url      string
	redis    rueidis.Client // for the work, which the library does not protect
	screen   *screen
	prefix   string // of every key, unique to this demo
	workers  int
	duration time.Duration
	lease    time.Duration
	options  latchkey.Options
}

func demoAction(ctx context.Context, cmd *cli.Command) error {
	s, err := stageFrom(cmd)
	if err != nil {
		return err
	}
	closeServer, err := s.openServer(cmd)
	if err != nil {
		return err
	}
	defer closeServer()

	defer onContinue(s.screen.continued)()
	return interruptibly(ctx, func(ctx context.Context) error {
		err := s.perform(ctx)
		var exit *exitError
		if errors.As(err, &exit) && exit.code == exitProofFailed && s.screen.stopped.Load() {
			return errStopped
		}
		return err
	})
}

func stageFrom(cmd *cli.Command) (*stage, error) {
	s := &stage{
		screen:   newScreen(cmd.Root().Writer),
		prefix:   "latchkey-demo:" + uuid.NewString()[:8] + ":",
		workers:  cmd.Int("workers"),
		duration: cmd.Duration("for"),
		lease:    cmd.Duration("lease"),
		options:  latchkey.Options{Logger: logger(cmd), Label: latchkey.NoLabel},
	}
	if cmd.Args().Present() {
		return nil, usageError("demo takes no arguments")
	}
	return s, nil
}

// openServer connects to the server of --redis, or to one that it starts in this
// process.
func (s *stage) openServer(cmd *cli.Command) (closer func(), err error) {
	server, closeEmbedded := "as named by --redis or LATCHKEY_REDIS", func() {}
	if s.url = cmd.String("redis"); s.url == "" {
		embedded, err := latchkeytest.Start()
		if err != nil {
			return nil, exitWith(exitSoftware, "cannot start the embedded server: %w", err)
		}
		server, closeEmbedded = "embedded in this process; --redis URL uses yours", embedded.Close
		s.url = embedded.URL()
	}
	if s.redis, err = rawClient(s.url); err != nil {
		closeEmbedded()
		return nil, err
	}
	s.screen.say("Latchkey demo. Server: %s.", server)
	return func() { s.redis.Close(); closeEmbedded() }, nil
}

// connect returns a new client for a worker that acts like a process of its own.
func (s *stage) connect(ctx context.Context) (*latchkey.Client, error) {
	client, err := latchkey.Connect(ctx, s.url, s.options)
	return client, libraryError(err)
}

// remove deletes an object, even if the demo was interrupted. The command that
// creates the object must not be interruptible: the server could execute an
// abandoned command after the deletion.
func remove(deletes func(context.Context) (bool, error)) {
	ctx, cancel := context.WithTimeout(context.Background(), sweepTimeout)
	defer cancel()
	_, _ = deletes(ctx)
}

// rawClient opens a connection that does not use the library.
func rawClient(url string) (rueidis.Client, error) {
	option, err := rueidis.ParseURL(url)
	if err != nil {
		return nil, usageError("--redis: %w", err)
	}
	option.DisableCache = true
	client, err := rueidis.NewClient(option)
	if err != nil {
		return nil, exitWith(exitUnavailable, "%w", err)
	}
	return client, nil
}

// perform plays the acts and gives the verdict on all of them.
func (s *stage) perform(ctx context.Context) error {
	var proofs []*proof
	for i, act := range acts {
		s.screen.say("")
		s.screen.sayIn(bold, "", "%d. %s", i+1, act.title)
		proof, err := act.play(ctx, s)
		if err != nil {
			return err
		}
		if proof != nil {
			proofs = append(proofs, proof)
		}
	}
	return s.conclude(proofs)
}

func (s *stage) conclude(proofs []*proof) error {
	code := 0
	s.screen.say("")
	for _, proof := range proofs {
		as := good
		if !proof.holds {
			code, as = exitProofFailed, bad
		}
		s.screen.sayIn(as, "", "%s", proof)
	}
	if code == 0 {
		s.screen.say("")
		s.screen.say("%s", nextSteps)
	}
	return silently(code)
}

// nextSteps suggests what to do after the demo.
const nextSteps = `What next:

  latchkey run NAME -- CMD                lock a command
  latchkey top                            see what is locked
  latchkey help                           see all commands
  go get github.com/latchkey-go/latchkey  lock in Go`

// errStopped is the error of a demo that was stopped, as by Ctrl-Z, so that leases expired.
var errStopped = exitWith(exitSoftware, "the demo was stopped while it ran, so it proves nothing; run it again")

// explain writes what an act is about, with one paragraph per sentence.
func (s *stage) explain(sentences ...string) {
	for _, sentence := range sentences {
		s.tell("%s", sentence)
	}
	s.screen.say("")
}

// tell writes what happens in an act.
func (s *stage) tell(format string, args ...any) {
	s.screen.sayIn("", margin, format, args...)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2fs", d.Seconds()) }
