package interop

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey"
)

// The verdicts on whether there is another round.
const (
	more   = 1
	enough = 2
)

// meeting has rounds in which nobody passes the latch before all have come to it.
type meeting struct {
	client  *latchkey.Client
	raw     rueidis.Client
	contest contest
	round   int
}

func (m *meeting) pass(ctx context.Context) (bool, error) {
	m.round++
	name := m.contest.Name + ":" + strconv.Itoa(m.round)
	another, err := m.another(ctx, name)
	if err != nil || !another {
		return false, err
	}
	latch := m.client.NewCountDownLatch(name)
	if _, err := latch.TrySetCount(ctx, m.contest.Parties); err != nil {
		return false, err
	}
	present := "interop-present:{" + name + "}"
	if err := m.raw.Do(ctx, m.raw.B().Incr().Key(present).Build()).Error(); err != nil {
		return false, err
	}
	if _, err := latch.CountDown(ctx); err != nil {
		return false, err
	}
	// A Redisson client that opens the latch removes the key: the round that Await looks for may
	// already be over.
	if err := latch.Await(ctx, latchkey.UnsetIsOpen(), latchkey.Wait(patience)); err != nil {
		return false, fmt.Errorf("%s: %w", name, err)
	}
	came, err := readNumber(ctx, m.raw, present)
	if err == nil && came != int64(m.contest.Parties) {
		err = fmt.Errorf("%s is open for %d of %d", name, came, m.contest.Parties)
	}
	return true, err
}

// another reports whether there is another round. All must agree: the first to call it decides.
func (m *meeting) another(ctx context.Context, name string) (bool, error) {
	verdict, key := enough, "interop-verdict:{"+name+"}"
	if time.Now().UnixNano() < m.contest.Until {
		verdict = more
	}
	err := m.raw.Do(ctx, m.raw.B().Set().Key(key).Value(strconv.Itoa(verdict)).Nx().Build()).Error()
	if err != nil && !rueidis.IsRedisNil(err) {
		return false, err
	}
	decided, err := readNumber(ctx, m.raw, key)
	return decided == more, err
}
