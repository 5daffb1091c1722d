package latchkeycron

import (
	"log/slog"
	"os"
	"time"

	"github.com/latchkey-go/latchkey"
)

const (
	// DefaultAtLeast is how long the lock of a job stays taken, unless [WithAtLeast] sets another
	// time.
	DefaultAtLeast = 5 * time.Second
	// DefaultKeyPrefix precedes the name of a job in the name of its lock.
	DefaultKeyPrefix = "gocron:"
)

// LockerOption is a setting of a [Locker].
type LockerOption func(*lockerSettings)

type lockerSettings struct {
	prefix  string
	atLeast time.Duration
	maxHold time.Duration
}

// WithAtLeast keeps the lock of a job taken for at least d after it was acquired, even if the job
// ends or its process dies: see [latchkey.AtLeast]. Default: DefaultAtLeast.
//
// Choose d longer than the sum of the difference between the clocks, the delays of the schedulers,
// and latchkey.Options.RetryBudget, which is how long an attempt is retried while the server fails.
// Choose it shorter than the time between two runs minus the difference between the clocks. Half of
// the time between two runs is a good choice. If d is too short, a job may run twice; if it is too
// long, runs are skipped.
//
// With 0 the lock is free when the job is done. That is for a job that may run often, but only once
// at a time.
func WithAtLeast(d time.Duration) LockerOption { return func(s *lockerSettings) { s.atLeast = d } }

// WithMaxHold frees the lock of a job that has not returned after d, so that the next run may begin
// elsewhere: see [latchkey.MaxHold]. For the job this is a loss like any other: see [Locker.Hold].
// d must not be shorter than the time of WithAtLeast. Default: no limit.
func WithMaxHold(d time.Duration) LockerOption { return func(s *lockerSettings) { s.maxHold = d } }

// WithKeyPrefix sets the text between latchkey.Options.KeyPrefix and the name of the job in the
// name of a lock. Default: DefaultKeyPrefix. With "" the names are those of "latchkey cron".
func WithKeyPrefix(prefix string) LockerOption { return func(s *lockerSettings) { s.prefix = prefix } }

// newLockerSettings also returns the options of each acquisition. latchkey rejects options that
// cannot be used.
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

// WithValue sets the value that the leader announces, which [latchkey.Election.Leader] and
// "latchkey leader" return. Default: the name of the machine.
func WithValue(value string) ElectorOption { return func(s *electorSettings) { s.value = value } }

// WithLogger sets the logger for a campaign that the server refuses, since gocron drops the errors
// of IsLeader. Default: slog.Default().
func WithLogger(logger *slog.Logger) ElectorOption {
	return func(s *electorSettings) { s.logger = logger }
}

func newElectorSettings(options []ElectorOption) electorSettings {
	s := electorSettings{logger: slog.Default()}
	s.value, _ = os.Hostname() // only people read it: an error does not matter
	for _, option := range options {
		option(&s)
	}
	return s
}
