package latchkeycron

import (
	"context"
	"slices"
	"sync"

	"github.com/go-co-op/gocron/v2"

	"github.com/latchkey-go/latchkey"
)

// Locker is a gocron.Locker: for each run of a job the schedulers of all processes compete, and one of them runs it.
// Give each process one, on a client of its own; it may serve any number of schedulers and jobs.
//
// The lock of a job is a [latchkey.Lock] whose name is the prefix and the name of the job. Name jobs with
// gocron.WithName: gocron takes the name of the function otherwise, which changes when the code does.
//
// The lock stays taken for a time after it was acquired ([WithAtLeast]), so that a job which is
// quicker than the clocks differ is not run again by a scheduler that is late; and for as long as the job takes. A run
// that is due meanwhile is left out. If a process dies while it runs a job, the others leave the job out until the lease of
// its client is over (latchkey.Options.Lease, 30 s by default), or the time of WithAtLeast, whichever is later.
type Locker struct {
	client  *latchkey.Client
	prefix  string
	options []latchkey.TryLockOption

	mu   sync.Mutex
	runs map[string]*latchkey.Hold // of the latest run of each job, while it lasts
}

var _ gocron.Locker = (*Locker)(nil)

// NewLocker returns a Locker on that client, which the caller closes. Nothing is sent.
func NewLocker(client *latchkey.Client, options ...LockerOption) *Locker {
	s, each := newLockerSettings(options)
	return &Locker{client: client, prefix: s.prefix, options: each, runs: map[string]*latchkey.Hold{}}
}

// Lock makes one attempt to get the right to run the job with that name, and does not wait for another scheduler that
// has it. gocron calls it before each run.
//
// If it returns an error, gocron leaves the run out, and hands the error to gocron.AfterLockError. ErrNotAcquired means
// that the job runs elsewhere, or ran there just now. ErrUnavailable means that the server could not be asked: nobody
// knows whether the job runs elsewhere, and it does not run here. An attempt that meets a server in trouble is repeated until it is answered,
// ctx ends, or Options.RetryBudget is spent. ErrInvalid means that the name of the job or an option cannot be
// used. All other errors are those of [latchkey.Lock.TryLock].
//
// A hold that ctx carries is not entered again: each run has an owner of its own.
func (l *Locker) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	options := append(slices.Clone(l.options), latchkey.By(l.client.NewOwner()))
	hold, err := l.client.NewLock(l.prefix+key).TryLock(ctx, options...)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs[key] = hold
	return &run{l, key, hold}, nil
}

// Hold returns the hold of the run of that job which this Locker has begun last, or nil if it is over: a nil Hold
// behaves as released. Call it when the job begins. It is how a job learns that the lock was lost, because the context that gocron
// gives to a job does not end then:
//
//	ctx = locker.Hold("nightly").Context(ctx)
func (l *Locker) Hold(key string) *latchkey.Hold {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.runs[key]
}

// run is the lock of one run of a job.
type run struct {
	locker *Locker
	key    string
	hold   *latchkey.Hold
}

// Unlock ends the run, also if ctx has ended, as it has when the scheduler shuts down. The errors are
// those of [latchkey.Hold.Unlock]; gocron drops them. A loss is in the log of the client too.
func (r *run) Unlock(ctx context.Context) error {
	r.locker.end(r)
	return r.hold.Unlock(ctx)
}

// end forgets the hold of a run, but not that of a later one, which begins here if the lock was lost.
func (l *Locker) end(r *run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.runs[r.key] == r.hold {
		delete(l.runs, r.key)
	}
}
