package request

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/base/identity"
)

// Setting is one option of a call. Each kind uses one of the fields, or none.
type Setting struct {
	Kind  Kind
	D     time.Duration
	Owner identity.Owner
	N     int
	Note  string
}

// Kind says which option a setting is. The zero Kind is that of an option that is nil.
type Kind int

// The kinds of settings. Those without a comment are the options of the same names.
const (
	Wait Kind = iota + 1
	Lease
	MaxHold
	AtLeast
	As
	AwaitSet
	TTL
	UnsetIsOpen
	Together      // how many permits are acquired at once
	UntilComplete // renewed without a limit, until it is confined
	Note
)
