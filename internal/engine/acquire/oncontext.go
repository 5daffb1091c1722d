package acquire

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
)

// HandleFrom returns the innermost live hold of the lock on ctx, or the innermost one if none is
// live, or nil.
func (p *Lock) HandleFrom(ctx context.Context) *hold.Handle {
	return hold.From(ctx, func(b hold.Backend) bool {
		s, is := b.(*ownership.Hold)
		return is && isOf(s, p)
	})
}

// isOf reports whether it is a hold of that lock, or of that side of it, in that client.
func isOf(s *ownership.Hold, p *Lock) bool {
	return isOn(s, &p.Lock, p.Spec.Side) && s.Ownership.Spec.Family == p.Spec.Family
}

// isOn reports whether it is a hold of the key of that lock, or of one side of it, in that client.
func isOn(s *ownership.Hold, p *ownership.Lock, side keyspace.Kind) bool {
	l := s.Ownership.Lock
	return l.Client == p.Client && l.Names.Key == p.Names.Key && l.Spec.Side == side
}

// HoldFrom returns the innermost live hold on ctx of the key of a lock, or of one side of it, or
// nil.
func HoldFrom(ctx context.Context, p *ownership.Lock, side keyspace.Kind) *ownership.Hold {
	for h := range hold.On(ctx) {
		if h.Err() != nil {
			continue // the members of a group that is over are given back a moment later
		}
		found := h.Find(func(b hold.Backend) bool {
			s, is := b.(*ownership.Hold)
			return is && isOn(s, p, side)
		})
		if found != nil && found.Err() == nil {
			return found.Backend().(*ownership.Hold)
		}
	}
	return nil
}
