package rw

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/engine/renewal"
	"github.com/latchkey-go/latchkey/internal/engine/script"
)

// The sides of a read/write lock.
var (
	// A script renews fewer of these holds than of others: a reader takes four times as long.
	Read = &acquire.Spec{
		Spec: &ownership.Spec{
			Kind: keyspace.KindRead, Family: keyspace.KindRWLock, Stored: keyspace.KindRWLock,
			Protocol: readProtocol{},
			Renew:    script.RWRenew, Renewals: renewal.MostInBatch / 4, RenewEach: readRenewals,
			Side: keyspace.KindRead, Line: line.Shared, Channel: Channel,
			Reentrant: true,
			Along:     true,
		},
		Attempts: readProtocol{},
		Resolve:  resolveSide,
		Ceiling:  signOfLife,
	}
	Write = &acquire.Spec{
		Spec: &ownership.Spec{
			Kind: keyspace.KindWrite, Family: keyspace.KindRWLock, Stored: keyspace.KindRWLock,
			Protocol: writeProtocol{},
			Renew:    script.RWRenew, Renewals: renewal.MostInBatch / 4, RenewEach: writeRenewals,
			Side: keyspace.KindWrite, Line: line.Exclusive, Channel: Channel,
			Reentrant: true,
			Passes:    true, GrantMark: "w",
		},
		Attempts: writeProtocol{},
		Resolve:  resolveSide,
		Ceiling:  signOfLife,
	}
)

// signOfLife is the longest time between two requests of a waiting reader or writer, so that the
// server knows of it when a write ends.
func signOfLife(c *core.Parts) time.Duration { return c.Config.StaleWaiterTimeout / 3 }
