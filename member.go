package latchkey

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
	"github.com/latchkey-go/latchkey/internal/engine/inspect"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
)

// member is a lock as a composite lock sees it: a lock of one key, or a composite lock itself.
type member interface {
	Name() string
	Acquire(ctx context.Context, verb string, waits bool, settings []request.Setting) (*hold.Handle, error)
	inspect(ctx context.Context) (inspect.Inspection, error)
	look(ctx context.Context) (inspect.Inspection, error) // without labels and notes
	forceUnlock(ctx context.Context, forceOne forceUnlocker) (bool, error)
	fault() error                            // why it cannot be used, or nil
	order() (key string, kind keyspace.Kind) // what members are ordered by
	locks() []*ownership.Lock                // the locks that it consists of
	isShared() bool                          // several owners may hold it at once
}

// forceUnlocker takes a lock of one key from its holder, and reports whether it was held.
type forceUnlocker func(ctx context.Context, p *ownership.Lock) (bool, error)

// single is a lock of one key as a member.
type single struct{ *acquire.Lock }

func (s single) inspect(ctx context.Context) (inspect.Inspection, error) {
	return s.Client.Inspector.Inspect(ctx, s.Names, s.Spec.Stored)
}

func (s single) look(ctx context.Context) (inspect.Inspection, error) {
	return s.Client.Inspector.Look(ctx, s.Names, s.Spec.Stored)
}

func (s single) forceUnlock(ctx context.Context, forceOne forceUnlocker) (bool, error) {
	return forceOne(ctx, &s.Lock.Lock)
}

func (s single) fault() error                            { return s.Names.Invalid }
func (s single) order() (key string, kind keyspace.Kind) { return s.Names.Key, s.Spec.Kind }
func (s single) locks() []*ownership.Lock                { return []*ownership.Lock{&s.Lock.Lock} }
func (s single) isShared() bool                          { return s.Spec.IsShared() }
