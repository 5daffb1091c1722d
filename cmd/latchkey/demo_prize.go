package main

import (
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey"
)

// prize is the lock or permit for which the workers of an act compete, and which one
// of them holds when it dies.
type prize struct {
	flag string // with which the victim gets the key
	key  string
	door func(*latchkey.Client) door
	room int           // how many may hold it at once
	stay time.Duration // how long the victim holds it before it dies

	kind  string
	one   string
	tasks string // what workers do while they hold it
	again string // what happened when it was free again
}

func theLock(key string) prize {
	return prize{
		flag: "lock", key: key, room: 1,
		door: func(c *latchkey.Client) door { return lockDoor{Locker: c.NewLock(key)} },
		kind: "lock", one: "the lock", tasks: "increments", again: "the others continued",
	}
}

func aPermit(key string, room int, stay time.Duration) prize {
	return prize{
		flag: "pool", key: key, room: room, stay: stay,
		door: func(c *latchkey.Client) door { return permitDoor{permitPool: c.NewPermitSemaphore(key)} },
		kind: "permit", one: "a permit", tasks: "jobs", again: fmt.Sprintf("%d were inside again", room),
	}
}

// shared reports whether several workers may hold the prize at once.
func (p prize) shared() bool { return p.kind == "permit" }
