package latchkey

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/renewal"
	"github.com/latchkey-go/latchkey/internal/engine/script"
)

// lockSpec is the re-entrant lock.
var lockSpec = &acquireSpec{
	spec: &spec{kind: keyspace.KindLock, family: keyspace.KindLock, stored: keyspace.KindLock,
		protocol: hashProtocol{}, renew: script.Renew, renewals: renewal.MostInBatch, reentrant: true, passes: true, handsOver: true},
	attempts: hashProtocol{}, resolve: resolveOwner, fresh: freshOwner}

// fencedSpec is the re-entrant lock with fencing tokens.
var fencedSpec = &acquireSpec{
	spec: &spec{kind: keyspace.KindFenced, family: keyspace.KindFenced, stored: keyspace.KindLock,
		protocol: hashProtocol{}, renew: script.Renew, renewals: renewal.MostInBatch, reentrant: true, fenced: true, passes: true, handsOver: true},
	attempts: hashProtocol{}, resolve: resolveOwner, fresh: freshOwner}

// spinSpec is the spec of the re-entrant lock, except that it waits by back-off: pause returns how
// long it rests after that many attempts. Its release publishes as any other: waiters of other locks of that name rely
// on the message.
func spinSpec(pause func(round int) time.Duration) *acquireSpec {
	s, of := *lockSpec, *lockSpec.spec
	of.kind = keyspace.KindSpin
	s.spec, s.backoff = &of, pause
	return &s
}

// mutexSpec polls more often than the other specs: see internal/engine/line/recipeturns.go.
var mutexSpec = &acquireSpec{
	spec: &spec{kind: keyspace.KindMutex, family: keyspace.KindMutex, stored: keyspace.KindMutex,
		protocol: stringProtocol{}, renew: script.Renew, renewals: renewal.MostInBatch, passes: true, handsOver: true, grantMark: "s", recipe: true},
	attempts: stringProtocol{}, resolve: resolveOwner, fresh: freshOwner}

// hashSpec is for giving back what a client was granted in vain: any lock in a hash. Grants do not tell its kind.
var hashSpec = &spec{kind: keyspace.KindLock, protocol: hashProtocol{}, grantMark: "h"}
