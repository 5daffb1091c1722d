package tests

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/history"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// capacity is how many permits the semaphores of the histories have.
const capacity = 10

// leasedPool is a semaphore whose permits have ids and leases.
type leasedPool interface {
	Name() string
	AcquireN(ctx context.Context, n int, options ...latchkey.PermitOption) ([]*latchkey.Permit, error)
	Release(ctx context.Context, ids ...string) ([]latchkey.PermitState, error)
}

// poolOf returns the semaphore of a name, fair or not.
func poolOf(client *latchkey.Client, fair bool, name string) leasedPool {
	if fair {
		return client.NewFairSemaphore(name)
	}
	return client.NewPermitSemaphore(name)
}

// permitHistoryProcess does random things with a semaphore until it is killed or its time is over.
// Its arguments: name, ticket of the server, address to reach it by, file for its stays, duration,
// and whether the semaphore is fair.
var permitHistoryProcess = rig.Child("history of permits", func(_ context.Context, args []string) error {
	lasts, err := time.ParseDuration(args[4])
	if err != nil {
		return err
	}
	file, err := os.Create(args[3])
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), lasts)
	defer cancel()
	fmt.Println("begins")
	client, closeAll, err := dialTicket(args[1], args[2], latchkey.Options{Lease: time.Second, RetryBudget: 500 * time.Millisecond, Tuning: latchkey.Tuning{StaleWaiterTimeout: time.Second}})
	if err != nil {
		return err
	}
	failed := make(chan error, 4)
	for range cap(failed) {
		go func() { failed <- acquireAtRandom(ctx, poolOf(client, args[5] == "true", args[0]), file) }()
	}
	for range cap(failed) {
		err = errors.Join(err, <-failed)
	}
	return errors.Join(err, closeAll(context.Background()), file.Close())
})

// acquireAtRandom acquires permits and gives them back in every possible way. It writes each stay
// twice, at its beginning and at its end: a stay without an end was held until the process was
// killed.
func acquireAtRandom(ctx context.Context, s leasedPool, file *os.File) error {
	for ctx.Err() == nil {
		options := []latchkey.PermitOption{latchkey.Wait(time.Microsecond + rand.N(300*time.Millisecond))}
		if rand.IntN(3) == 0 {
			options = append(options, latchkey.Lease(200*time.Millisecond+rand.N(time.Second)))
		}
		permits, err := s.AcquireN(context.Background(), 1+rand.IntN(4), options...)
		if errors.Is(err, latchkey.ErrNotAcquired) || errors.Is(err, latchkey.ErrUnavailable) {
			continue // a short wait may be over before the server has replied
		}
		if err != nil {
			return err
		}
		for _, p := range permits {
			if err := entry(file, "+", p); err != nil {
				return err
			}
		}
		rest(rand.N(5 * time.Millisecond))
		for _, p := range permits {
			if err := errors.Join(entry(file, "-", p), releaseSomehow(s, p)); err != nil {
				return err
			}
		}
	}
	return nil
}

// entry records the beginning or the end of a stay, and for how long the permit is valid.
func entry(file *os.File, sign string, p *latchkey.Permit) error {
	now := time.Now()
	_, err := fmt.Fprintf(file, "%s %s %d %d\n", sign, p.ID(), now.UnixNano(), now.Add(p.ValidFor()).UnixNano())
	return err
}

// releaseSomehow releases a permit, by itself or by its id, or leaves it to its lease. A network
// failure is not an error of the library.
func releaseSomehow(s leasedPool, p *latchkey.Permit) (err error) {
	if rand.IntN(2) == 0 {
		err = p.Release(context.Background())
	} else {
		_, err = s.Release(context.Background(), p.ID())
	}
	if errors.Is(err, latchkey.ErrUnknownOutcome) || errors.Is(err, latchkey.ErrNotHeld) {
		return nil
	}
	return err
}

// Eight processes, which are killed and replaced, do random things with ten permits over a network
// that loses replies. On the server, held and available permits add up to ten at every moment, and
// by the holders' own account no more than ten are held. LATCHKEY_TEST_PERMIT_TIME sets the
// duration.
func TestHistoryOfPermits(t *testing.T) {
	rig.Long(t)
	rig.Repeated(t, "LATCHKEY_TEST_PERMIT_TIME", 6*time.Second, func(t *testing.T, lasts time.Duration) { historyOfPermits(t, false, lasts) })
}

// The same with permits that are granted in order.
func TestHistoryOfFairPermits(t *testing.T) {
	rig.Long(t)
	rig.Repeated(t, "LATCHKEY_TEST_PERMIT_TIME", 6*time.Second, func(t *testing.T, lasts time.Duration) { historyOfPermits(t, true, lasts) })
}

func historyOfPermits(t *testing.T, fair bool, lasts time.Duration) {
	t.Helper()
	const processes = 8
	server := rig.Shared()
	witness := connect(t, server)
	s := newPermits(t, witness, capacity)
	tap := rig.NewTap(t, server)

	var files []string
	start := func() *rig.ChildProcess {
		files = append(files, filepath.Join(t.TempDir(), strconv.Itoa(len(files))))
		address := server.Addr()
		if len(files)%2 == 0 {
			address = tap.Addr()
		}
		child := permitHistoryProcess.Start(t, s.Name(), server.Ticket(), address, files[len(files)-1], (lasts + 3*soon).String(), strconv.FormatBool(fair))
		child.Line(t, soon, "begins")
		return child
	}
	var children []*rig.ChildProcess
	for range processes {
		children = append(children, start())
	}
	// A busy machine takes longer for a history that is worth a check.
	began, least := time.Now(), rig.Paced(100)
	goesOn := func() bool {
		took := time.Since(began)
		return took < lasts || took < lasts+2*soon && len(readPermits(t, files)) <= least
	}
	steps, kills, lost := 0, 0, 0
	raw := server.Raw(t)
	killing, losing := time.NewTicker(1500*time.Millisecond), time.NewTicker(200*time.Millisecond)
	defer killing.Stop()
	defer losing.Stop()
	for goesOn() {
		select {
		case <-killing.C:
			i := rand.IntN(processes)
			children[i].Kill()
			children[i] = start()
			kills++
		case <-losing.C:
			tap.Lose(1+rand.IntN(5), rig.Mentions(s.Name()), losses[rand.IntN(2)].loss)
			lost++
		default:
			steps++
			require.NoError(t, sum(t.Context(), raw, s.Name()))
		}
	}
	for _, child := range children {
		child.Kill()
	}
	rig.Eventually(t, soon, "all permits come back", func() error {
		if n, err := freeIn(t.Context(), s); n != capacity || err != nil {
			return errors.Join(err, fmt.Errorf("%d available", n))
		}
		return nil
	})
	stays := readPermits(t, files)
	history.CheckStays(t, capacity, stays)
	t.Logf("%d permits granted; sums right at %d moments; %d kills, %d losses", len(stays), steps, kills, lost)
	assert.Greater(t, len(stays), least)
	assert.Positive(t, kills)
}

// sum checks, in one transaction, that held and available permits add up to the capacity.
func sum(ctx context.Context, raw rueidis.Client, name string) error {
	reply := raw.DoMulti(ctx,
		raw.B().Multi().Build(), raw.B().Get().Key(name).Build(), raw.B().Zcard().Key(idsOf(name)).Build(), raw.B().Exec().Build())
	values, err := reply[3].ToArray()
	if err != nil {
		return err
	}
	free, err1 := values[0].AsInt64()
	held, err2 := values[1].AsInt64()
	if free+held != capacity || free < 0 {
		err = fmt.Errorf("%d available and %d held of %d", free, held, capacity)
	}
	return errors.Join(err, err1, err2)
}

// readPermits reads the files of stays. A stay ends where its process said so, or where its
// validity ended.
func readPermits(t *testing.T, files []string) (stays []history.Stay) {
	t.Helper()
	for _, name := range files {
		open := map[string]history.Stay{} // as if each ended with its validity
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			var sign, id string
			var at, until int64
			if _, err := fmt.Sscanf(line, "%s %s %d %d\n", &sign, &id, &at, &until); err != nil {
				continue // torn by a kill
			}
			if sign == "+" {
				open[id] = history.Stay{From: at, To: until, Permits: 1}
				continue
			}
			s := open[id]
			if until > at {
				s.To = at
			} else {
				s.To = min(at, s.To) // it was lost, at a time that nobody recorded
			}
			stays = append(stays, s)
			delete(open, id)
		}
		stays = slices.AppendSeq(stays, maps.Values(open)) // renewed, so it lasted at least this long
	}
	return stays
}
