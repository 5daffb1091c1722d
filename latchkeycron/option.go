package latchkeycron

import (
	"log/slog"
	"os"
	"time"

	"github.com/latchkey-go/latchkey"
)

const (
	// DefaultAtLeast is for how long the lock of a job stays taken, if [WithAtLeast] does not say otherwise.
	DefaultAtLeast = 5 * time.Second
	// DefaultKeyPrefix stands before the name of a job in the name of its lock.
	DefaultKeyPrefix = "gocron:"
)

// LockerOption is a setting of a [Locker].
type LockerOption func(*lockerSettings)

type lockerSettings struct {
	prefix  string
	atLeast time.Duration
	maxHold time.Duration
}

// WithAtLeast keeps the lock of a job taken for at least d after it was acquired, even if the job ends or its
// process dies: see [latchkey.AtLeast]. Default: DefaultAtLeast.
//
// Choose d longer than the clocks of the machines may differ, with the delays of their schedulers and
// latchkey.Options.RetryBudget, for which an attempt is repeated while the server is in trouble; and shorter than the
// time between two runs, less what the clocks differ. Half of the time between two runs allows for most. A d that is
// too short has a job run twice, one that is too long leaves runs out.
//
// With 0 the lock is free when the job is done. That is for jobs of which one is to run at a time, however often.
func WithAtLeast(d time.Duration) LockerOption { return func(s *lockerSettings) { s.atLeast = d } }

// WithMaxHold frees the lock of a job that has not returned when d is over, so that the next run may begin elsewhere: see
// [latchkey.MaxHold]. The job learns of it as of any other loss: see [Locker.Hold]. It must not be shorter
// than the time of WithAtLeast. Default: no limit.
func WithMaxHold(d time.Duration) LockerOption { return func(s *lockerSettings) { s.maxHold = d } }

// WithKeyPrefix sets what the name of a lock has before the name of its job, after latchkey.Options.KeyPrefix.
// Default: DefaultKeyPrefix. With "" the names are those of "latchkey cron".
func WithKeyPrefix(prefix string) LockerOption { return func(s *lockerSettings) { s.prefix = prefix } }

// newLockerSettings also returns the options of each acquisition. latchkey refuses those that cannot be used.
func newLockerSettings(options []LockerOption) (lockerSettings, []latchkey.TryLockOption) {
	s := lockerSettings{prefix: DefaultKeyPrefix, atLeast: DefaultAtLeast}
	for _, option := range options {
		option(&s)
	}
	var each []latchkey.TryLockOption
	if s.atLeast != 0 {
		each = append(each, latchkey.AtLeast(s.atLeast))
	}
	if s.maxHold != 0 {
		each = append(each, latchkey.MaxHold(s.maxHold))
	}
	return s, each
}

// ElectorOption is a setting of an [Elector].
type ElectorOption func(*electorSettings)

type electorSettings struct {
	value  string
	logger *slog.Logger
}

// WithValue sets what the leader announces, for calls that ask for the leader ([latchkey.Election.Leader], or "latchkey
// leader"). Default: the name of the machine.
func WithValue(value string) ElectorOption { return func(s *electorSettings) { s.value = value } }

// WithLogger sets the logger that learns of a campaign that the server refuses. gocron drops the errors of
// IsLeader. Default: slog.Default().
func WithLogger(logger *slog.Logger) ElectorOption {
	return func(s *electorSettings) { s.logger = logger }
}

func newElectorSettings(options []ElectorOption) electorSettings {
	s := electorSettings{logger: slog.Default()}
	s.value, _ = os.Hostname() // it is for people to read
	for _, option := range options {
		option(&s)
	}
	return s
}
