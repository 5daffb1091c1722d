package group

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
	"github.com/latchkey-go/latchkey/internal/engine/inspect"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
)

// Member is a lock as a composite lock sees it: a lock of one key, or a composite lock itself.
type Member interface {
	Name() string
	Acquire(ctx context.Context, verb string, waits bool, settings []request.Setting) (*hold.Handle, error)
	Inspect(ctx context.Context) (inspect.Object, error)
	ForceUnlock(ctx context.Context, forceOne forceUnlocker) (bool, error)
	Fault() error                            // why it cannot be used, or nil
	Order() (key string, kind keyspace.Kind) // what members are ordered by
	Locks() []*ownership.Lock                // the locks that it consists of
	IsShared() bool                          // several owners may hold it at once
}

// forceUnlocker takes a lock of one key from its holder, and reports whether it was held.
type forceUnlocker func(ctx context.Context, p *ownership.Lock) (bool, error)

// Single is a lock of one key as a member.
type Single struct{ *acquire.Lock }

// Inspect implements [Member].
func (s Single) Inspect(ctx context.Context) (inspect.Object, error) {
	return s.Client.Inspector.Inspect(ctx, s.Names, keyspace.Noun(s.Spec.Stored))
}

// ForceUnlock implements [Member].
func (s Single) ForceUnlock(ctx context.Context, forceOne forceUnlocker) (bool, error) {
	return forceOne(ctx, &s.Lock.Lock)
}

// Fault implements [Member].
func (s Single) Fault() error { return s.Names.Invalid }

// Order implements [Member].
func (s Single) Order() (key string, kind keyspace.Kind) { return s.Names.Key, s.Spec.Kind }

// Locks implements [Member].
func (s Single) Locks() []*ownership.Lock { return []*ownership.Lock{&s.Lock.Lock} }

// IsShared implements [Member].
func (s Single) IsShared() bool { return s.Spec.IsShared() }
