package rig

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/redis/rueidis"
)

// Section is a critical section that detects, across processes, when two are inside at once. Its
// state is in Redis: how many are inside, a counter that is read and written without protection,
// and the number of violations. It uses a connection of its own, so that no fault on the
// connections of the locks disturbs it.
type Section struct {
	client                      rueidis.Client
	inside, counter, violations string
}

// NewSection returns the section of a name. All clients with the same name and server share it.
func NewSection(client rueidis.Client, name string) *Section {
	prefix := "rig-section:{" + name + "}:"
	return &Section{client, prefix + "inside", prefix + "counter", prefix + "violations"}
}

// Pass goes through the section once. The lock under test must be held.
func (s *Section) Pass(ctx context.Context) error {
	count, err := s.enter(ctx)
	if err != nil {
		return err
	}
	return s.leave(ctx, count+1)
}

// enter counts itself in and reads the counter.
func (s *Section) enter(ctx context.Context) (int64, error) {
	b := s.client.B
	replies := s.client.DoMulti(ctx, b().Incr().Key(s.inside).Build(), b().Get().Key(s.counter).Build())
	inside, err := replies[0].AsInt64()
	if err != nil {
		return 0, err
	}
	if inside != 1 {
		return 0, s.violation(ctx, inside)
	}
	count, err := replies[1].AsInt64()
	if rueidis.IsRedisNil(err) {
		return 0, nil
	}
	return count, err
}

func (s *Section) violation(ctx context.Context, inside int64) error {
	err := s.client.Do(ctx, s.client.B().Incr().Key(s.violations).Build()).Error()
	return fmt.Errorf("%d are inside the section at once (%v)", inside, err)
}

// leave writes the counter and counts itself out.
func (s *Section) leave(ctx context.Context, count int64) error {
	b := s.client.B
	for _, reply := range s.client.DoMulti(ctx,
		b().Set().Key(s.counter).Value(strconv.FormatInt(count, 10)).Build(),
		b().Decr().Key(s.inside).Build(),
	) {
		if err := reply.Error(); err != nil {
			return err
		}
	}
	return nil
}

// Verify fails the test unless exactly want passes went through and never two at once. It removes
// the section's keys.
func (s *Section) Verify(tb testing.TB, want int64) {
	tb.Helper()
	got, seen := s.read(tb, s.counter), s.read(tb, s.violations)
	if seen != 0 {
		tb.Errorf("two were inside the critical section %d times", seen)
	}
	if got != want {
		tb.Errorf("the unprotected counter is %d after %d passes: %d were lost", got, want, want-got)
	}
	s.client.Do(background(), s.client.B().Del().Key(s.inside, s.counter, s.violations).Build())
}

func (s *Section) read(tb testing.TB, key string) int64 {
	tb.Helper()
	n, err := s.client.Do(background(), s.client.B().Get().Key(key).Build()).AsInt64()
	if err != nil && !rueidis.IsRedisNil(err) {
		tb.Fatalf("rig: section: %v", err)
	}
	return n
}
