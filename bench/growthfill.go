package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

// The keys of waiters; docs/reference/keys.md describes their contents.
const (
	queueKey     = "latchkey_queue:{" + growingName + "}"
	fairQueueKey = "redisson_lock_queue:{" + growingName + "}"
	fairTimesKey = "redisson_lock_timeout:{" + growingName + "}"
	fairNotesKey = "latchkey_fair:{" + growingName + "}"
)

// strangerLife is how long the waiters that fill the queues count as alive.
const strangerLife = time.Hour

// fillPart is how many waiters one round trip adds.
const fillPart = 1000

// stranger returns the owner of a waiter that no client runs.
func stranger(i int) string { return fmt.Sprintf("55555555-5555-4555-8555-555555555555:%d", i) }

// fillQueue puts waiters into the queue of a lock. Their time of arrival is an hour ahead, so that
// they stay behind real waiters.
func (e *env) fillQueue() error {
	came := float64(time.Now().Add(strangerLife).UnixMicro())
	return e.fill(func(from, to int) rueidis.Commands {
		members := e.server.B().Zadd().Key(queueKey).ScoreMember()
		for i := from; i < to; i++ {
			members = members.ScoreMember(came+float64(i), stranger(i)+" 5000 0")
		}
		return rueidis.Commands{members.Build()}
	})
}

// fillFairQueue puts waiters at the end of the queue of a fair lock.
func (e *env) fillFairQueue() error {
	now := time.Now()
	alive := now.Add(strangerLife).UnixMilli()
	return e.fill(func(from, to int) rueidis.Commands {
		var owners []string
		times := e.server.B().Zadd().Key(fairTimesKey).ScoreMember()
		notes := e.server.B().Hset().Key(fairNotesKey).FieldValue()
		for i := from; i < to; i++ {
			owners = append(owners, stranger(i))
			times = times.ScoreMember(float64(alive), stranger(i))
			notes = notes.FieldValue(stranger(i), strconv.FormatInt(now.UnixMicro()+int64(i), 10)+":"+strconv.FormatInt(alive, 10))
		}
		queue := e.server.B().Rpush().Key(fairQueueKey).Element(owners...).Build()
		return rueidis.Commands{queue, times.Build(), notes.Build()}
	})
}

// fill adds Many waiters, one part after the other.
func (e *env) fill(part func(from, to int) rueidis.Commands) error {
	for from := 0; from < e.Many; from += fillPart {
		for _, reply := range e.server.DoMulti(e.ctx, part(from, min(from+fillPart, e.Many))...) {
			if err := reply.Error(); err != nil {
				return err
			}
		}
	}
	return nil
}
