package renewal

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// MostInBatch is how many holds one script renews: more would block the server for too long.
const MostInBatch = 100

// A renewal waits for its answer for renewPatience at most, however long the lease is, and for
// leastRenewPatience at least.
const (
	renewPatience      = 2 * time.Second
	leastRenewPatience = 10 * time.Millisecond
)

// renewAll renews holds in as few scripts as the cluster slots allow, and does not wait
// for the answers.
func (w *Watchdog) renewAll(r *route, due []Hold) {
	for _, batch := range w.batches(due) {
		w.renewSoon(r, batch)
	}
}

// renewSoon renews a batch as soon as the route has a slot for it, and does not wait for the
// answer. If the whole batch is refused, it is divided, and its parts wait for slots like any other
// batch, without holding a slot or for SendMu.
func (w *Watchdog) renewSoon(r *route, batch []Hold) {
	select {
	case r.Slots <- struct{}{}:
	case <-w.open.Done():
		return
	}
	w.tasks.Go(func() {
		parts := w.renewBatch(w.reserve(r, batch))
		<-r.Slots
		for _, part := range parts {
			w.renewSoon(r, part)
		}
	})
}

// reservation is one hold in a batch, with SendMu locked: no release of it is sent before the
// renewal has returned, and no renewal follows a release that has begun.
type reservation struct {
	Hold

	lease time.Duration
}

// reserve locks SendMu of each hold that still needs renewal. A busy hold is renewed alone when its
// SendMu is free.
func (w *Watchdog) reserve(r *route, batch []Hold) []reservation {
	renewals := make([]reservation, 0, len(batch))
	for _, h := range batch {
		if !h.SendMutex().TryLock() {
			w.tasks.Go(func() { w.renewAlone(r, h) })
			continue
		}
		renewals = reserved(h, renewals)
	}
	return renewals
}

// reserved appends the hold, whose SendMu is locked, to renewals, or unlocks it if there is nothing
// to renew.
func reserved(h Hold, renewals []reservation) []reservation {
	lease := h.NextLease()
	if lease == 0 {
		h.SendMutex().Unlock()
		return renewals
	}
	return append(renewals, reservation{h, lease})
}

// renewAlone waits for SendMu of a hold in line with other calls: a call that retries again and
// again must not keep a renewal out.
func (w *Watchdog) renewAlone(r *route, h Hold) {
	ctx, cancel := context.WithTimeout(w.open, h.Period())
	defer cancel()
	if h.SendMutex().LockToRenew(ctx) != nil {
		h.RenewLater(nil)
		return
	}
	select {
	case r.Slots <- struct{}{}:
		w.renewBatch(reserved(h, nil))
		<-r.Slots
	default: // a release must not wait for SendMu until other renewals are answered
		h.SendMutex().Unlock()
		h.RenewLater(nil)
	}
}

// batches groups holds that one script may renew.
func (w *Watchdog) batches(all []Hold) [][]Hold {
	type batchKey struct {
		renew transport.Command
		most  int
		slot  uint16
	}
	groups := map[batchKey][]Hold{}
	for _, h := range all {
		renew, most := h.Batch()
		key := batchKey{renew, most, w.slotOf(h)}
		groups[key] = append(groups[key], h)
	}
	var batches [][]Hold
	for key, group := range groups {
		batches = slices.AppendSeq(batches, slices.Chunk(group, key.most))
	}
	return batches
}

// renewBatch sends one script, passes the result to each hold, and unlocks each SendMu. If the
// server refuses a batch for one of its keys, it returns the parts to send again.
func (w *Watchdog) renewBatch(batch []reservation) (parts [][]Hold) {
	if len(batch) == 0 {
		return nil
	}
	sent, results, err := w.sendRenewal(batch)
	switch {
	case len(batch) > 1 && script.Divisible(err):
		return divide(batch)
	case len(batch) == 1 && outcome.HasCode(err, "TRYAGAIN"):
		results, err = w.renewKeyByKey(batch[0], err)
	}
	for i, r := range batch {
		switch {
		case i < len(results) && results[i] == 0:
			r.Gone()
		case err != nil || results[i] < 0:
			r.RenewLater(cmp.Or(err, errNotRenewed))
		default:
			r.Renewed(sent, r.lease, results[i])
		}
		r.SendMutex().Unlock()
	}
	if err != nil {
		w.config.Failed(batch[0].Keys().Name, len(batch), err)
	}
	return nil
}

// errNotRenewed means that the server replied to a renewal without saying whether the hold is
// there.
var errNotRenewed = fmt.Errorf("%w: the server did not renew the lease", fault.ErrUnavailable)

// divide unlocks each SendMu of a batch, and returns its halves.
func divide(batch []reservation) [][]Hold {
	all := make([]Hold, len(batch))
	for i, r := range batch {
		r.SendMutex().Unlock()
		all[i] = r.Hold
	}
	half := len(all) / 2
	return [][]Hold{all[:half], all[half:]}
}

func (w *Watchdog) sendRenewal(batch []reservation) (sent lease.Stamp, results []int64, err error) {
	var all script.Call
	patience := renewPatience
	for _, r := range batch {
		all.Add(r.RenewalCall(r.lease))
		patience = min(patience, r.patience())
	}
	sent = w.config.Clock()
	results, err = w.config.Send(all, patience)
	if err == nil && len(results) != len(batch) {
		results, err = nil, outcome.ErrSilent
	}
	return sent, results, err
}

// patience returns how long to wait for the answer to a renewal.
func (r reservation) patience() time.Duration {
	return max(r.RenewalPatience(r.lease), leastRenewPatience)
}

// SendOver returns a function for Config.Send that sends over s. Replicas confirm the
// renewals, unless confirm is nil.
func SendOver(s *transport.Sender, confirm *transport.Replication) func(script.Call, time.Duration) ([]int64, error) {
	return func(c script.Call, patience time.Duration) ([]int64, error) {
		if confirm != nil {
			patience = max(patience, confirm.Patience()) // a replica that confirms within that time is in time
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		results, err := s.SendOnce(ctx, c.Confirmed(confirm)).AsIntSlice()
		if err != nil {
			results = script.Denials(err)
		}
		return results, err
	}
}

// renewKeyByKey renews one hold with a command for each of its keys, because the server refused a
// command with all of them. The hold is renewed if all commands succeed.
func (w *Watchdog) renewKeyByKey(r reservation, refusal error) ([]int64, error) {
	calls := r.RenewalCalls(r.lease)
	if calls == nil {
		return nil, refusal
	}
	for _, c := range calls {
		results, err := w.config.Send(c, r.patience())
		switch {
		case err == nil && len(results) != 1:
			return nil, script.ErrReply
		case err != nil || results[0] != 1:
			return results, err
		}
	}
	return []int64{1}, nil
}
