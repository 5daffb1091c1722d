package interop

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey"
)

// alone is the weight of a stay that tolerates no other.
const alone = 1000

// poolSize is the number of permits for which the contestants contend.
const poolSize = 3

// contender passes once, and returns whether to go on.
type contender func(ctx context.Context) (again bool, err error)

// newContender returns what one thread does. The classes in driver/ do the same.
func newContender(c contest, client *latchkey.Client, raw rueidis.Client, d *diary) contender {
	counter := counter{raw, c.Name}
	switch c.Kind {
	case "rw":
		return library{client.NewRWLock(c.Name), counter, c.hold(), d}.pass
	case "semaphore":
		return pool{client.NewSemaphore(c.Name), counter, c.hold(), d}.pass
	case "permit":
		return lending{client.NewPermitSemaphore(c.Name), counter, c.hold(), d}.pass
	case "latch":
		return (&meeting{client: client, raw: raw, contest: c}).pass
	case "multi":
		return pair{client, raw, c.Name, d}.pass
	default:
		return single{lockOf(client, c.Kind, c.Name), counter, c.hold(), d}.pass
	}
}

func (c contest) hold() time.Duration { return time.Duration(c.Hold) * time.Millisecond }

// counter is a number in Redis, protected only by the lock under test.
type counter struct {
	raw  rueidis.Client
	name string
}

func (c counter) key() string { return "interop-counter:{" + c.name + "}" }

func (c counter) read(ctx context.Context) (int64, error) { return readNumber(ctx, c.raw, c.key()) }

func (c counter) count(ctx context.Context) error {
	n, err := c.read(ctx)
	if err != nil {
		return err
	}
	return c.raw.Do(ctx, c.raw.B().Set().Key(c.key()).Value(strconv.FormatInt(n+1, 10)).Build()).Error()
}

// watch fails if the number changes while it looks.
func (c counter) watch(ctx context.Context) error {
	before, err := c.read(ctx)
	if err != nil {
		return err
	}
	if after, err := c.read(ctx); err != nil || after != before {
		return fmt.Errorf("somebody counted from %d to %d while somebody read (%w)", before, after, err)
	}
	return nil
}

func readNumber(ctx context.Context, raw rueidis.Client, key string) (int64, error) {
	n, err := raw.Do(ctx, raw.B().Get().Key(key).Build()).AsInt64()
	if rueidis.IsRedisNil(err) {
		return 0, nil
	}
	return n, err
}

// single is one lock that excludes.
type single struct {
	lock    anyLock
	counter counter
	hold    time.Duration
	diary   *diary
}

func (s single) pass(ctx context.Context) (bool, error) {
	start := time.Now()
	hold, err := s.lock.Lock(ctx)
	if err != nil {
		return false, err
	}
	from := s.diary.waited(start)
	err = s.counter.count(ctx)
	<-time.After(s.hold)
	s.diary.stay(s.counter.name, from, time.Now(), alone, hold.Token())
	return true, errors.Join(err, hold.Unlock(ctx))
}

// pair is two of three locks.
type pair struct {
	client *latchkey.Client
	raw    rueidis.Client
	name   string
	diary  *diary
}

func (p pair) pass(ctx context.Context) (bool, error) {
	first := rand.IntN(3)
	names := []string{p.name + strconv.Itoa(first), p.name + strconv.Itoa((first+1)%3)}
	start := time.Now()
	hold, err := latchkey.NewMultiLock(p.client.NewLock(names[0]), p.client.NewLock(names[1])).Lock(ctx)
	if err != nil {
		return false, err
	}
	from := p.diary.waited(start)
	err = errors.Join(counter{p.raw, names[0]}.count(ctx), counter{p.raw, names[1]}.count(ctx))
	to := time.Now()
	for _, name := range names {
		p.diary.stay(name, from, to, alone, 0)
	}
	return true, errors.Join(err, hold.Unlock(ctx))
}

// library has readers, writers, and writers that keep reading.
type library struct {
	lock    *latchkey.RWLock
	counter counter
	hold    time.Duration
	diary   *diary
}

func (l library) pass(ctx context.Context) (bool, error) {
	choice := rand.IntN(10)
	var side anyLock = l.lock.Reader()
	if choice >= 6 {
		side = l.lock.Writer()
	}
	start := time.Now()
	hold, err := side.Lock(ctx)
	if err != nil {
		return false, err
	}
	l.diary.waited(start)
	if choice >= 6 {
		if hold, err = l.write(ctx, hold, choice == 9); err != nil || hold == nil {
			return true, err
		}
	}
	return true, l.read(ctx, hold)
}

func (l library) read(ctx context.Context, hold *latchkey.Hold) error {
	from := time.Now()
	err := l.counter.watch(ctx)
	<-time.After(l.hold)
	l.diary.stay(l.counter.name, from, time.Now(), 1, 0)
	return errors.Join(err, hold.Unlock(ctx))
}

// write writes under the hold. It returns the downgraded hold if downgrade is true.
func (l library) write(ctx context.Context, hold *latchkey.Hold, downgrade bool) (*latchkey.Hold, error) {
	from := time.Now()
	err := l.counter.count(ctx)
	<-time.After(l.hold)
	l.diary.stay(l.counter.name, from, time.Now(), alone, 0)
	if err != nil || !downgrade {
		return nil, errors.Join(err, hold.Unlock(ctx))
	}
	return hold.Downgrade(ctx)
}

// pool is a semaphore from which one or two permits are taken.
type pool struct {
	semaphore *latchkey.Semaphore
	counter   counter
	hold      time.Duration
	diary     *diary
}

func (p pool) pass(ctx context.Context) (bool, error) {
	permits, start := 1+rand.IntN(2), time.Now()
	if err := p.semaphore.AcquireN(ctx, permits); err != nil {
		return false, err
	}
	from := p.diary.waited(start)
	_, err := p.counter.read(ctx) // only takes time
	<-time.After(p.hold)
	p.diary.stay(p.semaphore.Name(), from, time.Now(), permits, 0)
	return true, errors.Join(err, p.semaphore.ReleaseN(ctx, permits))
}

// lending is a semaphore whose permits have leases.
type lending struct {
	semaphore *latchkey.PermitSemaphore
	counter   counter
	hold      time.Duration
	diary     *diary
}

func (l lending) pass(ctx context.Context) (bool, error) {
	n, start := 1+rand.IntN(2), time.Now()
	permits, err := l.semaphore.AcquireN(ctx, n)
	if err != nil {
		return false, err
	}
	from := l.diary.waited(start)
	_, err = l.counter.read(ctx)
	<-time.After(l.hold)
	l.diary.stay(l.semaphore.Name(), from, time.Now(), n, 0)
	for _, permit := range permits {
		err = errors.Join(err, permit.Release(ctx))
	}
	return true, err
}
