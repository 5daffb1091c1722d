package latchkey

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
)

// member is a lock as a composite lock sees it: a lock of one key, or a composite lock itself.
type member interface {
	Name() string
	acquire(ctx context.Context, verb string, waits bool, settings []request.Setting) (*hold.Handle, error)
	inspect(ctx context.Context) (inspection, error)
	look(ctx context.Context) (inspection, error) // without labels and notes
	ForceUnlock(ctx context.Context) (bool, error)
	fault() error                            // why it cannot be used, or nil
	order() (key string, kind keyspace.Kind) // what members are ordered by
	primitives() []*primitive                // the primitives that it consists of
	isShared() bool                          // several owners may hold it at once
}

func (l *baseLock) self() member                            { return l }
func (l *baseLock) fault() error                            { return l.names.Invalid }
func (l *baseLock) order() (key string, kind keyspace.Kind) { return l.names.Key, l.spec.kind }
func (l *baseLock) primitives() []*primitive                { return []*primitive{&l.primitive} }
func (l *baseLock) isShared() bool                          { return l.spec.isShared() }
