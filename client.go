package latchkey

import (
	"context"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/owners"
	"github.com/latchkey-go/latchkey/internal/engine/report"
	"github.com/latchkey-go/latchkey/internal/primitive/admin"
	"github.com/latchkey-go/latchkey/internal/transport/nodes"
)

// Client makes locks and does their background work, with one connection for messages and one
// goroutine for renewals. A program needs one client for each Redis. All methods may be called from
// any goroutine.
type Client core.Handle

func (c *Client) engine() *core.Parts { return (*core.Handle)(c).Parts() }

// New makes a client that uses an existing rueidis client, which it does not close. If an option is
// invalid, New returns an ErrInvalid.
//
// Prefer [Open] with the settings of that client, unless you have to share its connections. The
// guarantees are the same, but a borrowed client may not return when a context ends, so every
// command is sent from its own goroutine: that is 23 allocations more for each uncontended Lock and
// Unlock. An attempt that got no answer is undone up to five times instead of once.
// docs/reference/options.md lists the rueidis settings that fit best.
//
// New asks a cluster which node serves which slots and whether it knows sharded messages, for at
// most two seconds or Options.RetryBudget, whichever is longer. If Options.Replicas requires
// confirmations, it tries WAIT, for at most Options.RetryBudget. Otherwise it sends nothing.
func New(client rueidis.Client, options Options) (*Client, error) {
	switch {
	case client == nil:
		return nil, fault.Invalid("the rueidis client is nil")
	case options.Tuning.AddressMapper != nil:
		return nil, fault.Invalid("Tuning.AddressMapper is for Connect and Open; this client has been opened already")
	case options.LazyConnect:
		return nil, fault.Invalid("Options.LazyConnect is for Connect and Open; this client has been opened already")
	}
	options, err := options.complete()
	if err != nil {
		return nil, err
	}
	return newClient(client, options, nil)
}

// newClient makes a client with complete options. topology is as for core.New.
func newClient(client rueidis.Client, options Options, topology *nodes.Topology) (*Client, error) {
	c, err := core.New(client, options.config(), report.New(options.Logger, observerOf(options)), topology)
	if err != nil {
		return nil, err
	}
	admin.RegisterGrants(c)
	return (*Client)(c.Handle), nil
}

// ID returns the random id of this client, the first part of its owners.
func (c *Client) ID() string { return c.engine().ID }

// Label returns the name of this client that people see: [Options].Label, or "" with [NoLabel].
func (c *Client) Label() string { return c.engine().Config.Label }

// NewOwner returns an owner that nobody else has, for [As] and [WithOwner].
func (c *Client) NewOwner() Owner {
	return Owner(identity.New(c.engine().ID, c.engine().Number()))
}

// Close ends everything: new calls and waiters get ErrClosed, live holds end with that cause and
// are released, background work stops, and a connection that the client opened is closed. It
// delivers pending log records and events, for Options.RetryBudget at most. When it returns nil, no
// goroutine is left.
//
// If ctx ends first, Close returns its error, and the remaining work goes on in the background.
// Locks that could not be released end with their leases. If ctx has already ended, or ends because
// the client is closed, as the context of a hold does, Close uses Options.RetryBudget instead, or
// the deadline of ctx if that is earlier. Further calls wait for the first and return the same
// result.
func (c *Client) Close(ctx context.Context) error {
	return owners.Close(ctx, c.engine())
}

// Check tests on the server what the client depends on: acquiring, renewing and releasing a lock
// with a name of its own ("latchkey:check:" and the client's id), publishing and subscribing, and
// that the server does not evict keys when memory runs short (unless INFO is denied). It returns
// nil, or all errors that it found, joined. Call it at start-up to learn of a missing permission
// before the first lock does. It leaves nothing behind.
func (c *Client) Check(ctx context.Context) error { return admin.Check(ctx, c.engine()) }
