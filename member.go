package latchkey

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
)

// member is a lock as a composite lock sees it: a primitive, or a composite lock itself.
type member interface {
	Name() string
	acquire(ctx context.Context, verb string, waits bool, settings []setting) (*hold.Handle, error)
	Inspect(ctx context.Context) (Inspection, error)
	inspect(ctx context.Context) (Inspection, error) // without labels and notes
	ForceUnlock(ctx context.Context) (bool, error)
	fault() error                            // why it cannot be used, or nil
	order() (key string, kind keyspace.Kind) // what members are ordered by
	primitives() []*primitive                // the primitives that it consists of
	isShared() bool                          // several owners may hold it at once
}

func (p *primitive) self() member                            { return p }
func (p *primitive) fault() error                            { return p.names.Invalid }
func (p *primitive) order() (key string, kind keyspace.Kind) { return p.names.Key, p.spec.kind }
func (p *primitive) primitives() []*primitive                { return []*primitive{p} }
func (p *primitive) isShared() bool                          { return p.spec.isShared() }
