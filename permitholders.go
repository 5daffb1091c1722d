package latchkey

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

// PermitHolder is a permit that is held.
type PermitHolder struct {
	// ID is the id of the permit, as [Permit.ID] returns it. Anybody who has the id can release the permit.
	ID string
	// Label is the label of the client that holds the permit, and Note is the [Note] of the permit. Both are ""
	// if unknown: see [Holder].
	Label, Note string
	// Lease is the rest of the permit's lease, NoExpiry if it does not end.
	Lease time.Duration
}

// Holders lists the permits that are held, in the order in which their leases end; nil if there are none. It
// reads 500 permits at a time, and the labels and notes as [Client.Inspect] does. In a list of more than 500,
// permits that come or go during the call may be missing or listed twice. It changes nothing.
//
// The error matches ErrNotSet if the semaphore is not there, ErrUnavailable if the server did not answer within
// Options.RetryBudget or until ctx ended, ErrClosed, ErrWrongKind, ErrInvalid if the name cannot be used, or is a
// *rueidis.RedisError if the server refuses.
func (s *permitPool) Holders(ctx context.Context) ([]PermitHolder, error) {
	const verb = "holders"
	var all []PermitHolder
	err := script.Pages(func(positions []string) (size int64, err error) {
		a, err := s.query(ctx, verb, script.NewCall(script.PermitHolders, []string{s.names.Key, s.secondKey, s.kindKey()}, positions...))
		if err != nil {
			return 0, err
		}
		page, size, err := readPermits(a.Message)
		if err != nil {
			return 0, fault.Op(verb, s.names.Name, err)
		}
		all = append(all, page...)
		return size, nil
	})
	if err != nil {
		return nil, err
	}
	labels.DescribeEach(ctx, s.client.Labels, 0, [][]PermitHolder{all}, func(p PermitHolder) identity.Owner { return identity.OfText(p.ID) },
		func(p *PermitHolder, d labels.Description) { p.Label, p.Note = d.Label, d.Note })
	return all, nil
}

// readPermits reads the reply of lua/permit/holders.lua.
func readPermits(reply rueidis.RedisMessage) (page []PermitHolder, size int64, err error) {
	parts, err := reply.ToArray()
	if err != nil || len(parts)%2 != 1 {
		return nil, 0, errors.Join(script.ErrReply, err)
	}
	size, err = parts[0].AsInt64()
	for i := 1; i < len(parts) && err == nil; i += 2 {
		raw, err1 := parts[i].ToString()
		left, err2 := parts[i+1].AsInt64()
		page = append(page, PermitHolder{ID: hex.EncodeToString([]byte(raw)), Lease: script.FromPTTL(left)})
		err = errors.Join(err1, err2)
	}
	if err != nil {
		return nil, 0, errors.Join(script.ErrReply, err)
	}
	return page, size, nil
}
