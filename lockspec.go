package latchkey

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/engine/renewal"
	"github.com/latchkey-go/latchkey/internal/engine/script"
)

// lockSpec is the re-entrant lock.
var lockSpec = &acquire.Spec{
	Spec: &ownership.Spec{Kind: keyspace.KindLock, Family: keyspace.KindLock, Stored: keyspace.KindLock,
		Protocol: hashProtocol{}, Renew: script.Renew, Renewals: renewal.MostInBatch, Reentrant: true, Passes: true, HandsOver: true},
	Attempts: hashProtocol{}, Resolve: acquire.ResolveOwner, Fresh: acquire.FreshOwner}

// fencedSpec is the re-entrant lock with fencing tokens.
var fencedSpec = &acquire.Spec{
	Spec: &ownership.Spec{Kind: keyspace.KindFenced, Family: keyspace.KindFenced, Stored: keyspace.KindLock,
		Protocol: hashProtocol{}, Renew: script.Renew, Renewals: renewal.MostInBatch, Reentrant: true, Fenced: true, Passes: true, HandsOver: true},
	Attempts: hashProtocol{}, Resolve: acquire.ResolveOwner, Fresh: acquire.FreshOwner}

// spinSpec is the spec of the re-entrant lock, except that it waits by back-off: pause returns how
// long it rests after that many attempts. Its release publishes as any other: waiters of other locks of that name rely
// on the message.
func spinSpec(pause func(round int) time.Duration) *acquire.Spec {
	s, of := *lockSpec, *lockSpec.Spec
	of.Kind = keyspace.KindSpin
	s.Spec, s.Backoff = &of, pause
	return &s
}

// mutexSpec polls more often than the other specs: see internal/engine/line/recipeturns.go.
var mutexSpec = &acquire.Spec{
	Spec: &ownership.Spec{Kind: keyspace.KindMutex, Family: keyspace.KindMutex, Stored: keyspace.KindMutex,
		Protocol: stringProtocol{}, Renew: script.Renew, Renewals: renewal.MostInBatch, Passes: true, HandsOver: true, GrantMark: "s", Recipe: true},
	Attempts: stringProtocol{}, Resolve: acquire.ResolveOwner, Fresh: acquire.FreshOwner}

// hashSpec is for giving back what a client was granted in vain: any lock in a hash. Grants do not tell its kind.
var hashSpec = &ownership.Spec{Kind: keyspace.KindLock, Protocol: hashProtocol{}, GrantMark: "h"}
