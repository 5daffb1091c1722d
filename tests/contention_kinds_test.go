package tests

import (
	"context"
	"fmt"
	"sync"

	"github.com/latchkey-go/latchkey"
)

// whole is the weight of an acquisition that excludes all others.
const whole = 1 << 20

// role is what goroutines of a client acquire, and how much of the whole that takes.
type role struct {
	acquire acquire
	weight  int32
}

// contended is something that several clients contend for.
type contended struct {
	name    string
	servers int
	// roles returns the roles of one contender, which has a client for each of the servers.
	roles   func(clients []*latchkey.Client, name string) []role
	queued  bool // waiters have a queue in Redis, in which they wait for dead ones
	lasting bool // what a killed process holds is never given back
	shown   bool // fairness is only printed and has no target
}

// contenders returns a contender with the given number of goroutines for each role.
func (l contended) contenders(clients []*latchkey.Client, name, who string, goroutines int) (all []contender) {
	for _, r := range l.roles(clients, name) {
		all = append(all, contender{name: who, goroutines: goroutines, acquire: r.acquire, weight: r.weight})
	}
	return all
}

// contendedKinds are the locks whose waiters get messages, alone and as members of a group, readers
// with writers, and permits.
func contendedKinds() (all []contended) {
	for _, k := range kinds {
		if messages(k) {
			all = append(all, contended{name: k.name, servers: 1, queued: k.queued,
				roles: exclusive(func(c []*latchkey.Client, name string) latchkey.Locker { return k.open(c[0], name) })})
		}
	}
	return append(all,
		contended{name: "MultiLock", servers: 1, shown: true, roles: exclusive(bothOf)},
		contended{name: "RedLock", servers: 3, shown: true, roles: exclusive(majorityOf)},
		contended{name: "ReadWriteLock", servers: 1, shown: true, roles: sides},
		contended{name: "Semaphore", servers: 1, shown: true, lasting: true, roles: permitsOf},
		contended{name: "PermitSemaphore", servers: 1, shown: true, roles: permitsWithIDs})
}

func contendedNamed(name string) (contended, error) {
	for _, l := range contendedKinds() {
		if l.name == name {
			return l, nil
		}
	}
	return contended{}, fmt.Errorf("nothing that is contended for is called %q", name)
}

func exclusive(open func(clients []*latchkey.Client, name string) latchkey.Locker) func([]*latchkey.Client, string) []role {
	return func(clients []*latchkey.Client, name string) []role {
		return []role{{locking(open(clients, name)), whole}}
	}
}

func bothOf(c []*latchkey.Client, name string) latchkey.Locker {
	return latchkey.NewMultiLock(c[0].NewLock(name+":1"), c[0].NewLock(name+":2"))
}

func majorityOf(clients []*latchkey.Client, name string) latchkey.Locker {
	var members []latchkey.Locker
	for _, client := range clients {
		members = append(members, client.NewMutex(name))
	}
	return latchkey.NewRedLock(latchkey.RedLockOptions{}, members...)
}

func sides(c []*latchkey.Client, name string) []role {
	rw := c[0].NewRWLock(name)
	return []role{{locking(rw.Reader()), 1}, {locking(rw.Writer()), whole}}
}

// contendedPermits is the number of permits of a semaphore.
const contendedPermits = 3

func permitsOf(c []*latchkey.Client, name string) []role {
	s := c[0].NewSemaphore(name)
	return permits(s.TrySetPermits, taking(s))
}

func permitsWithIDs(c []*latchkey.Client, name string) []role {
	s := c[0].NewPermitSemaphore(name)
	return permits(s.TrySetPermits, func(ctx context.Context) (taken, error) {
		return takenPermit(s.Acquire(ctx))
	})
}

// permits returns a role that acquires one permit at a time, after the number of permits was set.
func permits(trySet func(context.Context, int, ...latchkey.SetOption) (bool, error), one acquire) []role {
	set := sync.OnceValue(func() error {
		_, err := trySet(context.Background(), contendedPermits)
		return err
	})
	return []role{{func(ctx context.Context) (taken, error) {
		if err := set(); err != nil {
			return taken{}, err
		}
		return one(ctx)
	}, whole / contendedPermits}}
}
