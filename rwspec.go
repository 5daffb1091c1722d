package latchkey

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/renewal"
	"github.com/latchkey-go/latchkey/internal/engine/script"
)

// The sides of a read/write lock.
var (
	// A script renews fewer of these holds than of others: a reader takes four times as long.
	readSpec = &acquireSpec{
		spec: &spec{kind: keyspace.KindRead, family: keyspace.KindRWLock, stored: keyspace.KindRWLock, protocol: readProtocol{}, renewEach: readRenewals,
			renew: script.RWRenew, channel: rwChannel, renewals: renewal.MostInBatch / 4, reentrant: true, side: keyspace.KindRead, line: line.Shared, along: true},
		attempts: readProtocol{}, resolve: resolveSide, fresh: freshOwner, ceiling: signOfLife}
	writeSpec = &acquireSpec{
		spec: &spec{kind: keyspace.KindWrite, family: keyspace.KindRWLock, stored: keyspace.KindRWLock, protocol: writeProtocol{}, renewEach: writeRenewals,
			renew: script.RWRenew, channel: rwChannel, renewals: renewal.MostInBatch / 4, reentrant: true, side: keyspace.KindWrite, line: line.Exclusive,
			passes: true, handsOver: true, grantMark: "w"},
		attempts: writeProtocol{}, resolve: resolveSide, fresh: freshOwner, ceiling: signOfLife}
)

// signOfLife is the longest time between two requests of a waiting reader or writer, so that the server knows
// of it when a write ends.
func signOfLife(c *engine) time.Duration { return c.Config.StaleWaiterTimeout / 3 }
