package semaphore

import (
	"context"
	"encoding/hex"
	"errors"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/engine/labels"
	"github.com/latchkey-go/latchkey/internal/engine/script"
)

// Holder is a permit that is held.
type Holder struct {
	ID          string
	Label, Note string
	Lease       time.Duration
}

// Holders lists the permits that are held, in the order in which their leases end.
func (s *Pool) Holders(ctx context.Context) ([]Holder, error) {
	const verb = "holders"
	var all []Holder
	keys := []string{s.Names.Key, s.SecondKey, s.KindKey()}
	err := script.Pages(func(positions []string) (size int64, err error) {
		a, err := s.Query(ctx, verb, script.NewCall(script.PermitHolders, keys, positions...))
		if err != nil {
			return 0, err
		}
		page, size, err := readPermits(a.Message)
		if err != nil {
			return 0, fault.Op(verb, s.Names.Name, err)
		}
		all = append(all, page...)
		return size, nil
	})
	if err != nil {
		return nil, err
	}
	labels.DescribeEach(ctx, s.Client.Labels, 0, [][]Holder{all},
		func(p Holder) identity.Owner { return identity.OfText(p.ID) },
		func(p *Holder, d labels.Description) { p.Label, p.Note = d.Label, d.Note })
	return all, nil
}

// readPermits reads the reply of lua/permit/holders.lua.
func readPermits(reply rueidis.RedisMessage) (page []Holder, size int64, err error) {
	parts, err := reply.ToArray()
	if err != nil || len(parts)%2 != 1 {
		return nil, 0, errors.Join(script.ErrReply, err)
	}
	size, err = parts[0].AsInt64()
	for i := 1; i < len(parts) && err == nil; i += 2 {
		raw, err1 := parts[i].ToString()
		left, err2 := parts[i+1].AsInt64()
		page = append(page, Holder{ID: hex.EncodeToString([]byte(raw)), Lease: script.FromPTTL(left)})
		err = errors.Join(err1, err2)
	}
	if err != nil {
		return nil, 0, errors.Join(script.ErrReply, err)
	}
	return page, size, nil
}
