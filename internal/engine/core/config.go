package core

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// Config is the settings of a client, checked and complete. Options of the root explains the fields
// of the same names.
type Config struct {
	Lease              time.Duration
	MaxHold            time.Duration
	StaleWaiterTimeout time.Duration
	RedissonFairWait   time.Duration
	PollCeiling        time.Duration
	RetryBudget        time.Duration
	Turn               time.Duration
	MaxInFlight        int
	KeyPrefix          string
	NameMapper         func(name string) string
	LazyConnect        bool
	ClassicPubSub      bool
	TimeFencing        bool
	Label              string // "" if the client has none
	Observes           bool   // there is an observer
	ReportDropped      bool

	// Confirmation returns how replicas confirm the commands of a client, or nil if they need not.
	// waits is how many commands may wait for the replicas of one node at once.
	Confirmation func(id string, waits int) *transport.Replication
	Clock        func() lease.Stamp // for tests, or nil for the clock of the system
}

// Names returns the keys of the object with that name. If the name cannot be used, Keys.Invalid
// says why.
func (c *Config) Names(name string) *keyspace.Keys {
	keys, _ := keyspace.Naming{Prefix: c.KeyPrefix, Map: c.NameMapper}.Keys(name)
	return keys
}

// maxWaits is how many acquisitions of a client wait for the replicas of one node at the same time.
// Each of them uses a connection of its own.
const maxWaits = 16
