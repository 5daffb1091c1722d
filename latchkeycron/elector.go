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

// campaignPause is the time between two campaigns if the server refuses for a reason that waiting does not change, such
// as a permission, until somebody has removed the reason.
const campaignPause = 5 * time.Second

// Elector is a gocron.Elector: of the schedulers of all processes, one runs all jobs. It campaigns in the background
// until Close, and again after each loss. Give each process one, on a client of its own; it may serve
// any number of schedulers.
//
// The election is that of [latchkey.Client.NewElection] with the same name. While the server keeps its data, IsLeader returns nil
// in one process at a time, except after [latchkey.Client.ForceUnlock]. If the leader dies, another one leads
// when its lease is over (latchkey.Options.Lease, 30 s by default).
//
// An Elector says who may begin a run, and nothing more. A run that has begun goes on if the leadership is lost, beside
// those of the next leader: see [Elector.Leadership]. When the leadership changes around the time at which a job is due, and the clocks of the two
// differ, that run may be done twice or left out. A [Locker] does not run a tick twice.
type Elector struct {
	election *latchkey.Election
	value    string
	logger   *slog.Logger

	stop    context.CancelFunc
	stopped chan struct{} // when the campaign is over for good
	result  error         // of the last resignation, then

	latest  atomic.Pointer[latchkey.Leadership] // of this process, over or not
	refusal atomic.Pointer[error]               // why the latest campaign ended, or nil
}

var _ gocron.Elector = (*Elector)(nil)

// NewElector begins to campaign in the background, and returns at once. Close ends that, and so does the end of the
// client.
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

// IsLeader returns nil if this process leads, judged at the moment of the call. It asks nobody and waits for nothing: it
// is as quick while the server is away. gocron calls it before each run, and leaves the run out if it returns an error.
//
// Every error matches ErrNotLeader. It matches besides that of the campaign, if it has failed: ErrClosed (the
// client is closed) and ErrInvalid (the name or the value cannot be used) are final; after others, such as
// ErrWrongKind or a missing permission, it campaigns again every five seconds. While the server
// cannot be reached the campaign goes on, and nothing but ErrNotLeader is said.
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

// Leadership returns the leadership that this process has had last, or nil if it never had one: a nil Leadership behaves
// as one that was resigned. It is how a job learns that the leadership was lost while it runs, because the context that
// gocron gives to a job does not end then, and where it finds the term:
//
//	ctx = elector.Leadership().Context(ctx)
func (e *Elector) Leadership() *latchkey.Leadership { return e.latest.Load() }

// Close ends the campaign, and resigns if this process leads: the next one leads at once. Shut the scheduler down
// before, so that no run goes on beside those of the next leader.
//
// nil means that this process does not lead and campaigns no more. An error that matches ErrUnknownOutcome means that the server has not
// confirmed that: the next leader may have to wait until the lease is over. Any other error is that of ctx,
// which ended before; the resignation goes on. Close may be called again.
func (e *Elector) Close(ctx context.Context) error {
	e.stop()
	select {
	case <-e.stopped:
		return e.result
	case <-ctx.Done():
		return fmt.Errorf("latchkeycron: close the elector of %q: %w", e.election.Name(), ctx.Err())
	}
}

// campaign leads again and again, until ctx ends or there is no sense in it.
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
		case err == nil: // a job has resigned our leadership: we stand in line again
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

// refused keeps and logs why a campaign ended, once for all that follow each other. It reports whether that is final.
func (e *Elector) refused(err error) (final bool) {
	if e.refusal.Swap(&err) == nil && !errors.Is(err, latchkey.ErrClosed) {
		e.logger.Error("latchkeycron: the campaign failed; no job is run here", "election", e.election.Name(), "error", err)
	}
	return errors.Is(err, latchkey.ErrClosed) || errors.Is(err, latchkey.ErrInvalid)
}
