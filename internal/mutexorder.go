package internal

// The mutexes of the library, in the root and below this folder, in the order in which they are
// locked: while one is held, only those below it may be locked. A line that says "itself" is an
// exception for two of the same kind: a composite hold or a RedLock before its members, and a
// writing ownership before the reading one of the same owner. tests/lockorder reads these tables,
// derives the order from the code, and fails if the two differ.
//
// These may be held for long: during a request to the server, and while foreign code runs.
//
//	mutex                         | guards                                                 | also
//	line.FIFO.FIFOMutex           | the front of a line, for a RedLock until its hold ends | itself, group.compositeHold.unlocking
//	group.compositeHold.unlocking | the releases of a composite hold, one at a time        | itself
//	ownership.Ownership.SendMu    | the commands for an ownership, one at a time           | itself
//
// The others are held for a short time. While one is held, nothing waits and no foreign code runs.
// One is locked while another is held only if its line names that one.
//
//	mutex                       | guards                                                   | also
//	core.Parts.mu               | that nothing begins once Close has begun                 |
//	core.Parts.kindStatesMu     | what a kind of lock keeps for all its locks of a client  |
//	line.Used.mu                | the lines of one kind of object, and what each knows     |
//	semaphore.Line.mu           | the line for the permits of a semaphore, and their turns |
//	group.compositeHold.mu      | which members are held, and the contexts of the whole    |
//	ownership.Ownership.mu      | the state of an ownership and its holds                  | itself
//	renewal.Watchdog.mu         | when each ownership is renewed                           | ownership.Ownership.mu
//	owners.Registry.mu          | the names of ownerships that the program knows           | ownership.Ownership.mu
//	queue.Entry.mu              | the place of an owner in a queue, and its grant          | ownership.Ownership.mu
//	inbox.Inbox.mu              | the owners that wait in queues on the server             | ownership.Ownership.mu
//	labels.Record.mu            | the record of this client, and when it is written        |
//	labels.Known.mu             | the labels of other clients                              |
//	undo.Undoer.mu              | what is to be undone, and when                           |
//	undo.Sessions.mu            | the sessions of operations that count once               |
//	waiters.List.mu             | the waiters in queues on the server, and their tickets   | foreign code
//	line.shard.mu               | lines, live ownerships: waiters, uses, last answers      | ownership.Ownership.mu, waiters.List.mu
//	pubsub.Notifier.mu          | the listeners, and the nodes that own slots              | waiters.List.mu
//	pubsub.listener.mu          | the subscriptions at a node                              | waiters.List.mu, pubsub.Notifier.mu
//	line.Counts.mu              | how many calls wait for each kind of object              |
//	report.Reporter.mu          | the reports that the program has yet to receive          |
//	async.FIFOMutex.mu          | the waiters for a FIFO mutex                             |
//	nodes.InFlight.mu           | the commands to a node that were left unanswered         | a wait
//	transport.grouping.mu       | the commands that are about to go to a node together     |
//	nodes.Backlog.mu            | what waits for a node                                    | renewal.Watchdog.mu, undo.Undoer.mu
//	nodes.silence.mu            | the timer of a connection that has to answer             |
//	nodes.connTracker.mu        | the open connections to a node                           |
//	connect.strayingClient.mu   | the connection used in place of the shared one           |
//	nodes.lastWords.mu          | what was sent last over a connection                     |
//	transport.Sender.mu         | the goroutines that send                                 |
//	nodes.Topology.mu           | the nodes of a cluster, and their slots                  |
//	connect.lazyClient.mu       | the attempt to open a client                             | waiters.List.mu
//
// line.FIFO.FIFOMutex: a release calls all members as an acquisition does, and does not acquire
// them; the analysis cannot tell. waiters.List.mu: a waiter that has a ticket has received a
// reply, so a lazy client is open, and its nodes are known without waiting. nodes.InFlight.mu: a
// slot that was left is freed by taking a value from a channel that has one for it.
