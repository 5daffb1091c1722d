package lock

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/engine/renewal"
	"github.com/latchkey-go/latchkey/internal/engine/script"
)

// Reentrant is the re-entrant lock.
var Reentrant = &acquire.Spec{
	Spec: &ownership.Spec{
		Kind: keyspace.KindLock, Family: keyspace.KindLock, Stored: keyspace.KindLock,
		Protocol: Hash{},
		Renew:    script.Renew, Renewals: renewal.MostInBatch,
		Reentrant: true,
		Passes:    true,
	},
	Attempts: Hash{},
}

// Fenced is the re-entrant lock with fencing tokens.
var Fenced = &acquire.Spec{
	Spec: &ownership.Spec{
		Kind: keyspace.KindFenced, Family: keyspace.KindFenced, Stored: keyspace.KindLock,
		Protocol: Hash{},
		Renew:    script.Renew, Renewals: renewal.MostInBatch,
		Reentrant: true, Fenced: true,
		Passes: true,
	},
	Attempts: Hash{},
}

// Spin is the spec of the re-entrant lock, except that it waits by back-off: pause returns how long
// it rests after that many attempts. Its release publishes as any other: waiters of other locks of
// that name rely on the message.
func Spin(pause func(round int) time.Duration) *acquire.Spec {
	s := Reentrant.Copy()
	s.Kind, s.Backoff = keyspace.KindSpin, pause
	return s
}

// Mutex polls more often than the other specs: see internal/engine/turns/recipe.go.
var Mutex = &acquire.Spec{
	Spec: &ownership.Spec{
		Kind: keyspace.KindMutex, Family: keyspace.KindMutex, Stored: keyspace.KindMutex,
		Protocol: String{},
		Renew:    script.Renew, Renewals: renewal.MostInBatch,
		Recipe: true,
		Passes: true, GrantMark: "s",
	},
	Attempts: String{},
}

// InHash is for giving back a lock that a client was granted and no longer wants: any lock in a
// hash. Grants do not tell its kind.
var InHash = &ownership.Spec{Kind: keyspace.KindLock, Protocol: Hash{}, GrantMark: "h"}
