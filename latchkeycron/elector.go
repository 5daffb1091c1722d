package latchkeycron

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/latchkey-go/latchkey"
)

// ErrNotLeader means that this process does not lead, or does not know that it does.
var ErrNotLeader = errors.New("not the leader")

// campaignPause is the time between two campaigns while the server refuses for a reason that
// somebody has to fix, such as a missing permission.
const campaignPause = 5 * time.Second

// Elector is a gocron.Elector: among the schedulers of all processes, one runs all jobs. It
// campaigns in the background until Close, and campaigns again after each loss. Create one Elector
// per process, on a client of its own; it may serve any number of schedulers.
//
// The election is that of [latchkey.Client.NewElection] with the same name. While the server keeps
// its data, IsLeader returns nil in one process at a time, except after
// [latchkey.Client.ForceUnlock]. If the leader dies, another process leads when the lease ends
// (latchkey.Options.Lease, 30 s by default).
//
// An Elector only decides which process may begin a run. A run in progress continues when the
// leadership is lost, alongside the runs of the next leader: see [Elector.Leadership]. If the
// leadership changes around the time at which a job is due, and the clocks of the two processes
// differ, that run may happen twice or not at all. A [Locker] does not run a tick twice.
type Elector struct {
	election *latchkey.Election
	value    string
	logger   *slog.Logger

	stop    context.CancelFunc
	stopped chan struct{} // closed when the campaign is over for good
	result  error         // of the last resignation, set before stopped is closed

	latest  atomic.Pointer[latchkey.Leadership] // of this process, current or past
	refusal atomic.Pointer[error]               // why the latest campaign ended, or nil
}

var _ gocron.Elector = (*Elector)(nil)

// NewElector starts to campaign in the background and returns at once. The campaign ends when the
// Elector or the client is closed.
func NewElector(client *latchkey.Client, name string, options ...ElectorOption) *Elector {
	s := newElectorSettings(options)
	ctx, stop := context.WithCancel(context.Background())
	e := &Elector{
		election: client.NewElection(name), value: s.value, logger: s.logger,
		stop: stop, stopped: make(chan struct{}),
	}
	go e.campaign(ctx)
	return e
}

// IsLeader returns nil if this process leads at the time of the call. It sends no command and never
// blocks, even when the server is unreachable. gocron calls it before each run, and skips the run
// if it returns an error.
//
// Every error matches ErrNotLeader. If the campaign failed, the error also matches the error of the
// campaign. ErrClosed (the client is closed) and ErrInvalid (the name or the value cannot be used)
// are final. After other errors, such as ErrWrongKind or a missing permission, the Elector
// campaigns again every five seconds. While the server is unreachable the campaign continues, and
// the error matches only ErrNotLeader.
func (e *Elector) IsLeader(context.Context) error {
	if e.Leadership().Err() == nil {
		return nil
	}
	err := ErrNotLeader
	if refusal := e.refusal.Load(); refusal != nil {
		err = fmt.Errorf("%w: %w", err, *refusal)
	}
	return fmt.Errorf("latchkeycron: election %q: %w", e.election.Name(), err)
}

// Leadership returns the latest leadership of this process, or nil if the process never led. A nil
// Leadership behaves like one that was resigned. A job uses it to get the term, and to learn that
// the leadership was lost while the job runs, because a loss does not end the context that gocron
// passes to the job:
//
//	ctx = elector.Leadership().Context(ctx)
func (e *Elector) Leadership() *latchkey.Leadership { return e.latest.Load() }

// Close ends the campaign, and resigns if this process leads, so that the next process leads at
// once. Shut the scheduler down first, so that no run continues alongside those of the next leader.
//
// A nil error means that this process does not lead and no longer campaigns. An error that matches
// ErrUnknownOutcome means that the server has not confirmed the resignation: the next leader may
// have to wait until the lease ends. Any other error is that of ctx, which ended first; the
// resignation continues. Close may be called again.
func (e *Elector) Close(ctx context.Context) error {
	e.stop()
	select {
	case <-e.stopped:
		return e.result
	case <-ctx.Done():
		return fmt.Errorf("latchkeycron: close the elector of %q: %w", e.election.Name(), ctx.Err())
	}
}

// campaign runs the election repeatedly, until ctx ends or an error is final.
func (e *Elector) campaign(ctx context.Context) {
	defer close(e.stopped)
	for {
		err := e.election.Run(ctx, e.value, e.lead)
		switch {
		case ctx.Err() != nil:
			if errors.Is(err, latchkey.ErrUnknownOutcome) {
				e.result = err
			}
			return
		case err == nil: // a job resigned our leadership: campaign again
			continue
		case e.refused(err):
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(campaignPause):
		}
	}
}

// lead is one leadership.
func (e *Elector) lead(ctx context.Context, l *latchkey.Leadership) error {
	e.refusal.Store(nil)
	e.latest.Store(l)
	<-ctx.Done()
	return nil
}

// refused stores why a campaign ended. It logs only the first of several failures in a row. It
// reports whether the error is final.
func (e *Elector) refused(err error) (final bool) {
	if e.refusal.Swap(&err) == nil && !errors.Is(err, latchkey.ErrClosed) {
		e.logger.Error("latchkeycron: the campaign failed; this process runs no jobs", "election", e.election.Name(), "error", err)
	}
	return errors.Is(err, latchkey.ErrClosed) || errors.Is(err, latchkey.ErrInvalid)
}
