package latchkey

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/primitive/semaphore"
)

// PermitState says what happened to a permit in a release by id.
type PermitState int

const (
	// PermitUndecided means that no answer came: if the error matches ErrUnknownOutcome, the
	// release is repeated in the background.
	PermitUndecided PermitState = PermitState(semaphore.Undecided)
	// PermitReleased means that it was held until now.
	PermitReleased PermitState = PermitState(semaphore.Released)
	// PermitExpired means that its lease had ended: another process may have had it since.
	PermitExpired PermitState = PermitState(semaphore.Expired)
	// PermitUnknown means that there is no permit with that id, or no longer.
	PermitUnknown PermitState = PermitState(semaphore.Unknown)
)

// String returns the state as a word.
func (s PermitState) String() string {
	switch s {
	case PermitReleased:
		return "released"
	case PermitExpired:
		return "expired"
	case PermitUnknown:
		return "unknown"
	}
	return "undecided"
}

// asPermitStates returns what Release returns for what the inside returned.
func asPermitStates(found []semaphore.State, err error) ([]PermitState, error) {
	var states []PermitState
	for _, each := range found {
		states = append(states, PermitState(each))
	}
	return states, err
}

// PermitHolder is a permit that is held.
type PermitHolder struct {
	ID          string        // as [Permit.ID] returns it
	Label, Note string        // of its client, and of the permit, or "": see [Holder]
	Lease       time.Duration // the rest of its lease, NoExpiry if it does not end
}

// asPermitHolders returns what Holders returns for what the inside returned.
func asPermitHolders(found []semaphore.Holder, err error) ([]PermitHolder, error) {
	var holders []PermitHolder
	for _, h := range found {
		holders = append(holders, PermitHolder(h))
	}
	return holders, err
}
