package latchkey

import (
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// Replicas says how many replicas must have a hold for it to count. Redis replicates
// after it has answered, so that a failover may forget a lock that somebody holds; what
// a replica has confirmed is there if that replica becomes the master.
//
// With it, an acquisition costs one more round trip, and what it waits for the replicas;
// renewals wait for them too, and a hold whose renewals they do not confirm is lost at
// the end of its lease, as if the master were silent. Releases do not wait. It is no
// consensus: a replica that has not confirmed may be the one that is promoted. Ask for as
// many as there are to rule that out, and for the price that the loss of one of them
// means no more locks.
type Replicas struct {
	// Min is how many replicas have to confirm. Default: 0, nothing is waited for and
	// WAIT is not needed.
	Min int
	// Timeout is how long they may take. It must be shorter than Options.RetryBudget, and
	// should be well under a third of the lease, so that renewals are in time.
	// Default: DefaultReplicaTimeout, or half the RetryBudget if that is less. The server looks at
	// its clock ten times a second, so that it may be 100 ms longer.
	Timeout time.Duration
}

// maxWaits is how many acquisitions of a client wait for the replicas of one node at the
// same time. Each has a connection to itself meanwhile.
const maxWaits = 16

// DefaultReplicaTimeout is the default of [Replicas].
const DefaultReplicaTimeout = time.Second

func (r Replicas) check(budget time.Duration) error {
	off := r.Min == 0
	switch {
	case r.Min < 0:
		return invalid("Options.Replicas.Min is negative")
	case off && r.Timeout >= 0: // which nobody uses
		return nil
	case r.Timeout < time.Millisecond || r.Timeout >= budget:
		return invalid("Options.Replicas.Timeout %v is not between 1ms and the retry budget %v", r.Timeout, budget)
	}
	return nil
}

// confirmation is how replicas confirm the commands of a client, of which so many may wait for
// those of one node; nil if nothing is to be confirmed.
func (r Replicas) confirmation(id string, waits int) *transport.Replication {
	if r.Min == 0 {
		return nil
	}
	return &transport.Replication{Min: r.Min, Timeout: r.Timeout, ID: id, Touch: touchScript, Waits: waits}
}

// waitRefused is the error of WAIT with what it means, or nil.
func waitRefused(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the command WAIT, which Options.Replicas needs, fails: %w", err)
}
