// Package internal has the inside of the library in rooms: packages with one duty each. A room
// imports rooms of its own floor and of lower ones, and nothing imports the root. Only transport
// and what is above it sends.
//
//	floor     | room       | duty
//	base      | async      | running in parallel, a mutex first come first served, signals, the heap of what is due
//	base      | fault      | the errors that calls return, and their texts
//	base      | identity   | owners, holders, the ids of clients and permits, and texts about them for people
//	base      | keyspace   | the keys and channels of an object, and their slots in a cluster
//	base      | lease      | when a lease ends and is renewed (term.go), bounds, margins for drift, both clocks
//	base      | request    | the options of one call, checked
//	transport |            | sending commands to servers, and repeating them; its doc.go follows one through the files
//	transport | nodes      | the servers that receive commands, their connections, slots, and commands in flight
//	transport | outcome    | what happened to a command: what its error means, and what the call returns
//	transport | retry      | when to try again: how long loops rest between two attempts
//	engine    | acquire    | one call that acquires, from its options to the hold or the error; re-entry; pauses
//	engine    | connect    | opening connections: addresses, settings, Sentinel, clusters; leaving a former master
//	engine    | core       | what the objects of a client share, how calls begin, and the last steps of Close
//	engine    | hold       | the handle of a hold, the contexts for the work under it, and the holds of one owner
//	engine    | inbox      | the messages to this client: that it was granted a lock, or has to query the server
//	engine    | inspect    | what is stored under a name
//	engine    | labels     | the label and the notes of a client, for people, on the server; those of other clients
//	engine    | line       | the lines of goroutines in a client, and the loop in which their calls wait
//	engine    | object     | named objects that are not locks
//	engine    | owners     | the ownerships of a client: by owner, grants that nobody wants any more, Close
//	engine    | ownership  | one owner has one lock, from the first acquisition to the last release, loss or MaxHold
//	engine    | pubsub     | one connection for messages, the channels that waiters listen to, and when they must poll
//	engine    | queue      | the entry of an owner in the queue of a lock on the server: its place there, and its grant
//	engine    | renewal    | the watchdog, which renews holds in time, and ends those that it cannot renew
//	engine    | report     | events for the observer of the program, and lines for its logger
//	engine    | script     | the commands, which are Lua scripts, and what their replies and errors mean
//	engine    | turns      | the turn of a client; those outside the queue: Redisson (strangers.go), redsync (recipe.go)
//	engine    | undo       | commands that were not answered, such as an Unlock: what is in doubt, and what settles it
//	engine    | waiters    | the waiters that keep a place each in a queue on the server: fair locks, permits with ids
//	primitive | admin      | listing objects and waiters, forced releases, unwanted grants, the check of a server
//	primitive | barrier    | the barrier
//	primitive | election   | the election
//	primitive | fair       | the fair lock: a hash with a queue next to it
//	primitive | group      | several locks as one: all of them, or a majority
//	primitive | latch      | the countdown latch
//	primitive | lock       | the scripts and the kinds of locks in a hash or a string
//	primitive | once       | work that succeeds once, and its result
//	primitive | rate       | the rate limiter
//	primitive | rw         | the two sides of a read/write lock
//	primitive | semaphore  | semaphores: counted permits, and permits with ids and leases, in line or in a queue
//	testredis |            | servers and the inside of clients, for tests only
//	model     |            | the models of the scripts: tests only
package internal
