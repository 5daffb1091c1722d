package latchkey

import (
	"cmp"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// NoLabel is the [Options].Label of a client that publishes no label or notes and shows none of
// other clients. It sends none of the commands that labels take.
const NoLabel = "-"

// Options are the settings of a [Client]. The zero value is ready for use; every field is optional.
// Values are checked when the client is made, also against each other: a bad value is an
// [ErrInvalid].
type Options struct {
	// Lease is the lease of acquisitions that do not set one. The client renews it while the hold
	// lives. If the holder crashes, the lock is free again after at most this time. Default: 30 s;
	// from 1 ms to 10 years.
	Lease time.Duration

	// MaxHold limits every renewed hold, permit and leadership of this client, as the option
	// [MaxHold] of an acquisition does, which replaces it. It ends a hold that the program has
	// forgotten, or whose work hangs. Holds with a fixed lease ([Lease]) have no other limit. Holds
	// with a limit are not passed on in memory (Turn). Default: no limit.
	MaxHold time.Duration

	// RetryBudget is how long the client repeats an operation that does not wait (a try, a release,
	// a query) while the server is unreachable, loading, or failing over. A context that ends
	// sooner ends it sooner, except a release. A call that waits, such as Lock, is repeated until
	// its context or its Wait ends. Default: 3 s, or Lease if that is shorter; at most Lease.
	RetryBudget time.Duration

	// KeyPrefix is put in front of every name. Redisson processes that share the locks need a
	// NameMapper with the same prefix. It has at most 448 bytes, is UTF-8, and its braces are
	// paired, as those of names are.
	KeyPrefix string

	// NameMapper maps a name to the key that is used in Redis. It must be deterministic. It
	// excludes KeyPrefix. What is required of a name is then required of the key alone.
	NameMapper func(name string) string

	// LazyConnect makes [Connect] and [Open] return at once, without dialing: the server may be
	// down. The first operation connects. Until the server can be reached, operations fail as they
	// do when a server goes down later.
	//
	// It works with single servers and Sentinel. The checks of Connect run before the first
	// command: with a server that belongs to a cluster, every operation is an [ErrInvalid]; with
	// one that forbids WAIT to a client with Replicas, every operation fails. Default: off, so that
	// a wrong address or password is found at the start.
	LazyConnect bool

	// Replicas makes replicas confirm acquisitions and renewals. Default: off.
	Replicas Replicas

	// TimeFencing keeps fencing tokens growing when their counter is lost (failover, eviction,
	// flush): a token is then at least the server's time in milliseconds. That does not help while
	// tokens are ahead of the clock, as after more than 1,000 acquisitions a second, or re-entries
	// by Java. Default: off; tokens count 1, 2, 3 … as Redisson's do.
	TimeFencing bool

	// Label is the name of this client for people: in [Client.Inspect], [Client.Waiters],
	// [Election.Leader], errors of busy locks, the command line, and, as latchkey:Label, in CLIENT
	// LIST, unless you gave the connections a name. It must be printable, and at most 128 bytes
	// long. Default: host:pid.
	//
	// While the client holds or waits for something, it keeps the label on the server, in a key of
	// its own, which takes at most one command a minute and ends with the client. No lock depends
	// on it. [NoLabel] turns all of this off.
	Label string

	// Logger receives reports that no error can carry: lost holds, messages that the server refuses
	// to publish, damaged keys. The same line about the same subject is logged once in ten seconds
	// (in an hour if only a change of settings can end the condition), for at most eight subjects.
	// Further lines are counted as "repeated". Default: slog.Default().
	Logger *slog.Logger

	// Observer, if set, is called at each [Event], soon after it happened.
	//
	// Logger and Observer are called from one goroutine at a time, in the order of events. No lock
	// waits for them: if they block or panic, only their own reports suffer. An event that finds
	// 8,192 others waiting is dropped, and the log says how many were. Client.Close waits for them,
	// so neither may wait for Close.
	Observer func(Event)

	// ReportDropped is for tests. A hold that the program has dropped without Unlock is renewed
	// until MaxHold is over or the client is closed. The client logs it when the garbage collector
	// has found it, but only after its first renewal. With ReportDropped it is logged from the
	// start, and so is a hold with a fixed lease: each hold then costs a finalizer. Default: off.
	ReportDropped bool

	// Tuning has settings that few programs need.
	Tuning Tuning
}

// config returns the settings for the inside of a client. The options are checked and complete.
func (o Options) config() core.Config {
	return core.Config{
		Lease: o.Lease, MaxHold: o.MaxHold, RetryBudget: o.RetryBudget,
		Turn: o.Tuning.Turn, MaxInFlight: o.Tuning.MaxInFlight,
		PollCeiling: o.Tuning.PollCeiling, StaleWaiterTimeout: o.Tuning.StaleWaiterTimeout,
		RedissonFairWait: o.Tuning.RedissonFairWait,
		KeyPrefix:        o.KeyPrefix, NameMapper: o.NameMapper,
		LazyConnect: o.LazyConnect, ClassicPubSub: o.Tuning.ClassicPubSub,
		TimeFencing: o.TimeFencing, Label: o.label(), Observes: o.Observer != nil, ReportDropped: o.ReportDropped,
		Confirmation: o.Replicas.confirmation,
	}
}

// complete returns the options with their defaults, or the error of the first setting that is
// unusable.
func (o Options) complete() (Options, error) {
	o = o.withDefaults()
	return o, o.check()
}

// withDefaults sets fields that are zero to their defaults.
func (o Options) withDefaults() Options {
	setDefault(&o.Lease, lease.Default)
	setDefault(&o.RetryBudget, min(3*time.Second, o.Lease))
	o.Tuning.complete(o.Lease)
	setDefault(&o.Replicas.Timeout, min(time.Second, o.RetryBudget/2))
	if o.Label == "" {
		o.Label = defaultLabel()
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}

// defaultLabel is host:pid.
func defaultLabel() string {
	host, _ := os.Hostname()
	pid := ":" + strconv.Itoa(os.Getpid())
	return cmp.Or(identity.CleanText(host, identity.MaxLabel-len(pid)), "host") + pid
}

// label returns the name of the client that people see, or "".
func (o Options) label() string {
	if o.Label == NoLabel {
		return ""
	}
	return o.Label
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// check reports the first setting that is unusable or contradicts another.
func (o Options) check() error {
	if err := lease.Check("Options.Lease", o.Lease); err != nil {
		return err
	}
	if err := o.Replicas.check(o.RetryBudget); err != nil {
		return err
	}
	if err := identity.CheckText("Options.Label", o.Label, identity.MaxLabel); err != nil {
		return err
	}
	if err := keyspace.CheckPrefix(o.KeyPrefix); err != nil {
		return err
	}
	if o.MaxHold != 0 {
		if err := lease.Check("Options.MaxHold", o.MaxHold); err != nil {
			return err
		}
	}
	switch {
	case o.RetryBudget < time.Millisecond || o.RetryBudget > o.Lease:
		return fault.Invalid("Options.RetryBudget %v is not between 1ms and the lease %v", o.RetryBudget, o.Lease)
	case o.KeyPrefix != "" && o.NameMapper != nil:
		return fault.Invalid("Options.KeyPrefix and Options.NameMapper exclude each other")
	}
	return o.Tuning.check(o.Lease)
}

// Replicas says how many replicas must have a hold for it to count. Redis replicates after it has
// answered, so a failover may lose a lock that somebody holds. A hold that a replica has confirmed
// survives if that replica becomes the master. This is not consensus: to rule out that another one
// is promoted, require all replicas; without any one of them nobody then acquires a lock.
//
// An acquisition costs one more round trip, and the wait for the replicas. Renewals wait for them
// too: a hold whose renewals they do not confirm is lost at the end of its lease. Releases do not
// wait.
type Replicas struct {
	// Min is how many replicas must confirm. Default: 0, which waits for none and does not need
	// WAIT.
	Min int
	// Timeout is how long they may take. It must be shorter than Options.RetryBudget, and should be
	// well under a third of the lease, so that renewals are in time. Default: 1 s, or half the
	// RetryBudget if that is less. The server checks its clock ten times a second, so the wait may
	// be 100 ms longer.
	Timeout time.Duration
}

func (r Replicas) check(budget time.Duration) error {
	off := r.Min == 0
	switch {
	case r.Min < 0:
		return fault.Invalid("Options.Replicas.Min is negative")
	case off && r.Timeout >= 0: // Timeout is not used
		return nil
	case r.Timeout < time.Millisecond || r.Timeout >= budget:
		return fault.Invalid("Options.Replicas.Timeout %v is not between 1ms and the retry budget %v", r.Timeout, budget)
	}
	return nil
}

// confirmation returns how replicas confirm the commands of a client, or nil if they need not.
// waits is how many commands may wait for the replicas of one node at once.
func (r Replicas) confirmation(id string, waits int) *transport.Replication {
	if r.Min == 0 {
		return nil
	}
	return &transport.Replication{Min: r.Min, Timeout: r.Timeout, ID: id, Touch: script.Touch, Waits: waits}
}
