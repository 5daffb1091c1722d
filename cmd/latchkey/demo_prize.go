package main

import (
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey"
)

// prize is what the workers of an act compete for, and what one of them dies with.
type prize struct {
	flag string // names it to the victim
	key  string
	door func(*latchkey.Client) door
	room int           // how many may have it at once
	stay time.Duration // how long the victim has it before it dies

	kind  string
	one   string
	tasks string // what workers do with it
	again string // what was so when it had come back
}

func theLock(key string) prize {
	return prize{
		flag: "lock", key: key, room: 1,
		door: func(c *latchkey.Client) door { return lockDoor{Locker: c.NewLock(key)} },
		kind: "lock", one: "the lock", tasks: "increments", again: "the others went on",
	}
}

func aPermit(key string, room int, stay time.Duration) prize {
	return prize{
		flag: "pool", key: key, room: room, stay: stay,
		door: func(c *latchkey.Client) door { return permitDoor{permitPool: c.NewPermitSemaphore(key)} },
		kind: "permit", one: "a permit", tasks: "jobs", again: fmt.Sprintf("%d were inside again", room),
	}
}

// shared tells a prize that several may have from one for one.
func (p prize) shared() bool { return p.kind == "permit" }
