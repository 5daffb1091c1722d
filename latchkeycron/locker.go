package latchkeycron

import (
	"context"
	"slices"
	"sync"

	"github.com/go-co-op/gocron/v2"

	"github.com/latchkey-go/latchkey"
)

// Locker is a gocron.Locker: the schedulers of all processes compete for each run of a job, and one
// of them runs it. Create one Locker per process, on a client of its own; it may serve any number
// of schedulers and jobs.
//
// The lock of a job is a [latchkey.Lock] whose name is the prefix and the name of the job. Name
// jobs with gocron.WithName: otherwise gocron uses the name of the function, which changes when the
// code does.
//
// The lock stays taken for as long as the job runs, and at least for the time of [WithAtLeast]
// after it was acquired. That time keeps a scheduler whose clock is late from repeating a quick
// job. A run that is due while the lock is taken is skipped.
//
// With gocron.LimitModeWait (in WithSingletonMode or WithLimitConcurrentJobs) a run that is due
// while an earlier one is busy is queued, and asks for the lock when it starts. By then another
// scheduler may have run that tick and released the lock: the tick runs twice. Use
// gocron.LimitModeReschedule, or a time of WithAtLeast that is longer than runs wait.
//
// If a process dies while it runs a job, the others skip the job until the lease of that client
// ends (latchkey.Options.Lease, 30 s by default), or until the time of WithAtLeast is over,
// whichever is later.
type Locker struct {
	client  *latchkey.Client
	prefix  string
	options []latchkey.TryLockOption

	mu   sync.Mutex
	runs map[string]*latchkey.Hold // of the latest run of each job, until that run ends
}

var _ gocron.Locker = (*Locker)(nil)

// NewLocker returns a Locker on client, which the caller closes. It sends no command.
func NewLocker(client *latchkey.Client, options ...LockerOption) *Locker {
	s, each := newLockerSettings(options)
	return &Locker{client: client, prefix: s.prefix, options: each, runs: map[string]*latchkey.Hold{}}
}

// Lock makes one attempt to acquire the lock of the job named key, and does not wait if another
// scheduler holds it. gocron calls it before each run.
//
// If Lock returns an error, gocron skips the run and passes the error to gocron.AfterLockError.
// ErrNotAcquired means that the job is running elsewhere, or ran there just now. ErrUnavailable
// means that the server did not answer: the job does not run here, and whether it runs elsewhere is
// unknown. While the server fails, the attempt is retried until the server answers, ctx ends, or
// Options.RetryBudget is spent. ErrInvalid means that the name of the job or an option cannot be
// used. All other errors are those of [latchkey.Lock.TryLock].
//
// Lock does not re-enter a hold that ctx carries: each run has an owner of its own.
func (l *Locker) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	options := append(slices.Clone(l.options), latchkey.As(l.client.NewOwner()))
	hold, err := l.client.NewLock(l.prefix+key).TryLock(ctx, options...)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs[key] = hold
	return &run{l, key, hold}, nil
}

// Hold returns the hold of the latest run of the job named key on this Locker, or nil if that run
// is over. A nil Hold behaves as released. Call Hold when the job begins. The job learns from it
// that the lock was lost, because a loss does not end the context that gocron passes to the job:
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

// Unlock ends the run, even if ctx has ended, as it has when the scheduler shuts down. The errors
// are those of [latchkey.Hold.Unlock]; gocron drops them. The client logs a loss too.
func (r *run) Unlock(ctx context.Context) error {
	r.locker.end(r)
	return r.hold.Unlock(ctx)
}

// end forgets the hold of a run, but not the hold of a later run, which may have begun here if the
// lock was lost.
func (l *Locker) end(r *run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.runs[r.key] == r.hold {
		delete(l.runs, r.key)
	}
}
