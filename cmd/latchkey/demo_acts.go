package main

import (
	"context"
	"fmt"
	"time"
)

// playWithoutLock shows that the work needs protection, and that the counter and
// the gauge detect when it is missing.
func playWithoutLock(ctx context.Context, s *stage) (*proof, error) {
	s.explain(
		fmt.Sprintf("%d workers read a counter, add one and write it back, all at the same time.", s.workers))
	arena := newArena(s, "unprotected")
	defer arena.sweep()
	crew, err := newCrew(ctx, s, &arena.gauge, arena.increment, nil)
	if err != nil {
		return nil, err
	}
	crew.start(ctx)
	_ = pause(ctx, s.duration/10)
	if err := crew.finish(); err != nil {
		return nil, err
	}
	value, err := arena.read(ctx)
	if err != nil {
		return nil, exitWith(exitUnavailable, "reading the counter: %w", err)
	}
	s.tell("They made %d increments, and the counter says %d: %d were lost. Up to %d workers were inside at once.",
		crew.turns(), value, crew.turns()-value, arena.gauge.peak())
	return nil, nil
}

// playWithLock shows the same work under a lock, which survives the death of its
// holder.
func playWithLock(ctx context.Context, s *stage) (*proof, error) {
	s.explain(
		"The same again, but each worker acquires the lock first.",
		fmt.Sprintf("Meanwhile, worker %d, a separate process, is killed while it holds the lock.", s.workers+1))
	arena := newArena(s, "protected")
	defer arena.sweep()
	prize := theLock(s.prefix + "lock")
	crew, err := newCrew(ctx, s, &arena.gauge, arena.increment, prize.door)
	if err != nil {
		return nil, err
	}
	defer crew.dismiss()
	death := newAccident(s, prize)
	if err := death.watch(ctx, crew); err != nil {
		return nil, err
	}
	return prove(ctx, arena, crew, death)
}

// prove compares the turns that the workers counted with the counter on the server.
func prove(ctx context.Context, a *arena, c *crew, death *accident) (*proof, error) {
	value, err := a.read(ctx)
	if err != nil {
		return nil, exitWith(exitUnavailable, "reading the counter: %w", err)
	}
	turns, most := c.turns(), c.gauge.peak()
	return &proof{
		holds: value == turns && turns > 0 && most == 1 && death.back,
		text: fmt.Sprintf("counter %d %s %d increments, at most %d inside, %s",
			value, sign(value, turns), turns, most, death.outcome()),
	}, nil
}

func sign(a, b int64) string {
	if a == b {
		return "="
	}
	return "≠"
}

// rows returns the state of a crew for the screen.
func (c *crew) rows(width int) []string {
	var most int64 = 1
	for _, w := range c.workers {
		most = max(most, w.turns.Load())
	}
	var rows []string
	for _, w := range c.workers {
		turns, wait := w.turns.Load(), time.Duration(w.longest.Load())
		row := fmt.Sprintf("%-9s %s %6d turns", w.name, bar(turns, most, barWidth(width)), turns)
		rows = append(rows, fmt.Sprintf("%s   longest wait %s", row, seconds(wait)))
	}
	return rows
}

// barWidth returns the width that a row has left for its bar.
func barWidth(width int) int {
	const rest = len(margin) + len("worker 10  123456 turns   longest wait 10.00s   in")
	return max(4, min(width-rest, 40))
}
