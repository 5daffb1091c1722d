package latchkey

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// Replicas says how many replicas must have a hold for it to count. Redis replicates after it has answered, so
// a failover may lose a lock that somebody holds. A hold that a replica has confirmed survives if that replica
// becomes the master.
//
// With Replicas, an acquisition costs one more round trip, and the wait for the replicas. Renewals wait for
// them too: if they do not confirm the renewals of a hold, it is lost at the end of its lease, as if the master
// were silent. Releases do not wait. This is not consensus: a replica that has not confirmed may be promoted.
// To rule that out, require all replicas; the price is that without any one of them nobody acquires a lock.
type Replicas struct {
	// Min is how many replicas must confirm. Default: 0, which waits for none and does not need WAIT.
	Min int
	// Timeout is how long they may take. It must be shorter than Options.RetryBudget, and should be well under
	// a third of the lease, so that renewals are in time. Default: DefaultReplicaTimeout, or half the
	// RetryBudget if that is less. The server checks its clock ten times a second, so the wait may be 100 ms
	// longer.
	Timeout time.Duration
}

// DefaultReplicaTimeout is the default of [Replicas].
const DefaultReplicaTimeout = time.Second

func (r Replicas) check(budget time.Duration) error {
	off := r.Min == 0
	switch {
	case r.Min < 0:
		return fault.Invalid("Options.Replicas.Min is negative")
	case off && r.Timeout >= 0: // Timeout is not used
		return nil
	case r.Timeout < time.Millisecond || r.Timeout >= budget:
		return fault.Invalid("Options.Replicas.Timeout %v is not between 1ms and the retry budget %v", r.Timeout, budget)
	}
	return nil
}

// confirmation returns how replicas confirm the commands of a client, or nil if they need not. waits is how
// many commands may wait for the replicas of one node at once.
func (r Replicas) confirmation(id string, waits int) *transport.Replication {
	if r.Min == 0 {
		return nil
	}
	return &transport.Replication{Min: r.Min, Timeout: r.Timeout, ID: id, Touch: script.Touch, Waits: waits}
}
