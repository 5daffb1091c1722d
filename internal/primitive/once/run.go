package once

import (
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/engine/renewal"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/primitive/lock"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// Spec is a fenced lock that is not re-entrant, and that nobody can acquire once the work is done.
// Its waiters do not queue on the server, because all of them get the result at once.
var Spec = &acquire.Spec{
	Spec: &ownership.Spec{
		Kind: keyspace.KindOnce, Family: keyspace.KindOnce, Stored: keyspace.KindOnce,
		Protocol: &run{},
		Renew:    script.Renew, Renewals: renewal.MostInBatch,
		Fenced: true, Public: true,
	},
	Attempts: &run{},
	Fresh:    freshRun,
	Wait:     wait,
}

// run is the protocol of one run: its release stores the result if there is one. Only the release
// differs from that of a lock; the renewal does not.
type run struct {
	lock.Hash

	result atomic.Pointer[stored]
}

// stored is what the release of a run that succeeded stores.
type stored struct{ token, ttl, result string }

func freshRun(a *acquire.Acquisition) (o *ownership.Ownership, others []*ownership.Ownership) {
	o = ownership.Fresh(&a.Lock.Lock)
	o.Protocol = &run{}
	return o, nil
}

func runOf(h *hold.Handle) *run { return h.Backend().(*ownership.Hold).Ownership.Protocol.(*run) }

// succeeds makes the release store a result, unless the hold is lost: then others may run already.
func (r *run) succeeds(h *hold.Handle, ttl string, result []byte) {
	if h.Err() == nil {
		h.Backend().(*ownership.Hold).Ownership.ReleaseStores()
		r.result.Store(&stored{strconv.FormatInt(h.Token(), 10), ttl, string(result)})
	}
}

// AcquireCall implements [acquire.Attempts].
func (*run) AcquireCall(a *acquire.Acquisition, _, _ int) script.Call {
	o := a.Ownership
	args := append(a.ArgsBuffer(), o.Wire, o.Client.LeaseText(a.Lease))
	return script.NewCall(script.OnceAcquire, a.Lock.Names.Alone(), args...)
}

// ReadRefusal implements [acquire.Attempts]. The error is a *success if the work is done.
func (*run) ReadRefusal(a *acquire.Acquisition, ans transport.Answer) (left time.Duration, err error) {
	reply, err := ans.Message.ToArray()
	if err != nil || len(reply) != 1 {
		return a.ReadHolder(ans)
	}
	result, err := reply[0].ToString()
	if err != nil {
		return 0, errors.Join(script.ErrReply, err)
	}
	return -1, &success{&a.Lock.Lock, result, ans.Sent}
}

// ReleaseCall implements [ownership.Protocol].
func (r *run) ReleaseCall(o *ownership.Ownership, _ ownership.Release, args []string) script.Call {
	args = append(args, o.Wire, o.Names.Channel, o.Client.Publish)
	if s := r.result.Load(); s != nil {
		return script.NewCall(script.OnceFinish, o.Names.Alone(), append(args, s.token, s.ttl, s.result)...)
	}
	return script.NewCall(script.OnceRelease, o.Names.Alone(), args...)
}

// success is the answer to an attempt that found the work done.
type success struct {
	*ownership.Lock

	result string
	asked  lease.Stamp // before the request was sent
}

// Error is for the observer.
func (*success) Error() string { return "latchkey: the work is done" }

// Is matches ErrNotAcquired: an attempt that found the work done acquired nothing.
func (*success) Is(target error) bool { return target == fault.ErrNotAcquired }
