package latchkey

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/report"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// renewBatch is how many holds one script renews: more would block the server for too long.
const renewBatch = 100

// renewPatience is the longest time that a renewal waits for its answer.
const renewPatience = 2 * time.Second

// renewAll renews holds in as few scripts as the cluster slots allow, and does not wait
// for the answers.
func (w *watchdog) renewAll(r *route, due []*ownership) {
	for _, batch := range w.batches(due) {
		w.renewSoon(r, batch)
	}
}

// renewSoon renews a batch as soon as the route has a slot for it, and does not wait for the answer. If the
// whole batch is refused, it is divided, and its parts wait for slots like any other batch, without holding a
// slot or for sendMu.
func (w *watchdog) renewSoon(r *route, batch []*ownership) {
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

// renewal is one hold in a batch, with sendMu locked: no release of it is sent before the renewal has
// returned, and no renewal follows a release that has begun.
type renewal struct {
	ownership *ownership
	lease     time.Duration
}

// reserve locks sendMu of each ownership that still needs renewal. A busy ownership is renewed alone when its
// sendMu is free.
func (w *watchdog) reserve(r *route, batch []*ownership) []renewal {
	renewals := make([]renewal, 0, len(batch))
	for _, o := range batch {
		if !o.sendMu.TryLock() {
			w.tasks.Go(func() { w.renewAlone(r, o) })
			continue
		}
		renewals = o.reserved(renewals)
	}
	return renewals
}

// reserved appends the ownership, whose sendMu is locked, to renewals, or unlocks it if there is nothing to
// renew.
func (o *ownership) reserved(renewals []renewal) []renewal {
	lease := o.nextLease()
	if lease == 0 {
		o.sendMu.Unlock()
		return renewals
	}
	return append(renewals, renewal{o, lease})
}

// renewAlone waits for sendMu of an ownership in line with other calls: a call that retries again and again
// must not keep a renewal out.
func (w *watchdog) renewAlone(r *route, o *ownership) {
	o.mu.Lock()
	period := o.lease.Period()
	o.mu.Unlock()
	ctx, cancel := context.WithTimeout(w.open, period)
	defer cancel()
	if o.sendMu.LockToRenew(ctx) != nil {
		o.renewLater()
		return
	}
	select {
	case r.Slots <- struct{}{}:
		w.renewBatch(o.reserved(nil))
		<-r.Slots
	default: // a release must not wait for sendMu until other renewals are answered
		o.sendMu.Unlock()
		o.renewLater()
	}
}

// batches groups holds that one script may renew.
func (w *watchdog) batches(all []*ownership) [][]*ownership {
	type batchKey struct {
		script transport.Command
		slot   uint16
	}
	groups := map[batchKey][]*ownership{}
	for _, o := range all {
		key := batchKey{o.lock.spec.renew, w.client.slotOf(o.lock.names.Key)}
		groups[key] = append(groups[key], o)
	}
	var batches [][]*ownership
	for _, group := range groups {
		batches = slices.AppendSeq(batches, slices.Chunk(group, group[0].lock.spec.renewals))
	}
	return batches
}

// renewBatch sends one script, passes the result to each ownership, and unlocks each sendMu. If the server
// refuses a batch for one of its keys, it returns the parts to send again.
func (w *watchdog) renewBatch(batch []renewal) (parts [][]*ownership) {
	if len(batch) == 0 {
		return nil
	}
	sent, results, err := w.sendRenewal(batch)
	switch {
	case len(batch) > 1 && divisible(err):
		return divide(batch)
	case len(batch) == 1 && transport.HasCode(err, "TRYAGAIN"):
		results, err = w.renewKeyByKey(batch[0], err)
	}
	for i, r := range batch {
		switch {
		case i < len(results) && results[i] == 0:
			r.ownership.lose(fault.ErrLost, "the key is gone or belongs to another owner")
		case err != nil || results[i] < 0:
			r.ownership.renewLater()
			r.ownership.observe(report.RenewalFailed, nil, script.Returned(cmp.Or(err, errNotRenewed)))
		default:
			r.ownership.renewed(sent, r.lease, results[i])
		}
		r.ownership.sendMu.Unlock()
	}
	if err != nil {
		w.client.reporter.Log(report.NoticeRenewal, batch[0].ownership.lock.Name(), slog.Int("holds", len(batch)), slog.Any("error", err))
	}
	return nil
}

// errNotRenewed means that the server replied to a renewal without saying whether the hold is there.
var errNotRenewed = fmt.Errorf("%w: the server did not renew the lease", fault.ErrUnavailable)

// divisible reports whether parts of a batch may succeed where the whole did not: a proxy, or a rule about one
// of the keys, may have refused it, or the keys are on two nodes because their slot migrates.
func divisible(err error) bool {
	return transport.HasCode(err, "TRYAGAIN") || transport.Declined(err) && !errors.Is(err, fault.ErrNotReplicated)
}

// divide releases the turns of a batch and returns its halves.
func divide(batch []renewal) [][]*ownership {
	all := make([]*ownership, len(batch))
	for i, r := range batch {
		r.ownership.sendMu.Unlock()
		all[i] = r.ownership
	}
	half := len(all) / 2
	return [][]*ownership{all[:half], all[half:]}
}

func (w *watchdog) sendRenewal(batch []renewal) (sent lease.Stamp, results []int64, err error) {
	var all script.Call
	patience := renewPatience
	for _, r := range batch {
		all.Add(r.ownership.protocol().renewalCall(r.ownership, r.lease))
		patience = min(patience, r.patience())
	}
	sent = w.clock()
	results, err = w.sendRenewals(all, patience)
	if err == nil && len(results) != len(batch) {
		results, err = nil, transport.ErrSilent
	}
	return sent, results, err
}

// patience returns how long to wait for the answer to a renewal.
func (r renewal) patience() time.Duration {
	o := r.ownership
	o.mu.Lock()
	defer o.mu.Unlock()
	return max(o.lease.RenewalPatience(o.lock.client.clock()), 10*time.Millisecond)
}

// sendRenewals sends renewals. With an error it returns the results that count regardless: see denials.
func (w *watchdog) sendRenewals(c script.Call, patience time.Duration) ([]int64, error) {
	if r := w.client.confirmRenewals; r != nil {
		patience = max(patience, r.Patience()) // a replica that confirms within that time is in time
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	results, err := w.client.sender.SendOnce(ctx, c.Cmd.Confirmed(w.client.confirmRenewals), c.Keys, c.Args).AsIntSlice()
	if err != nil {
		results = script.Denials(err)
	}
	return results, err
}

// renewKeyByKey renews one hold with a command for each of its keys, because the server refused a command with
// all of them. The hold is renewed if all commands succeed.
func (w *watchdog) renewKeyByKey(r renewal, refusal error) ([]int64, error) {
	p, is := r.ownership.protocol().(keyByKey)
	if !is {
		return nil, refusal
	}
	for _, c := range p.renewalCalls(r.ownership, r.lease) {
		results, err := w.sendRenewals(c, r.patience())
		switch {
		case err == nil && len(results) != 1:
			return nil, script.ErrReply
		case err != nil || results[0] != 1:
			return results, err
		}
	}
	return []int64{1}, nil
}
