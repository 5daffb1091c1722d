package latchkey

// Waiting returns how many calls of this client wait now, by the kind of the object they wait for.
// Kinds for which no call waits are missing. It sends nothing and takes no lock.
//
// A call waits from its first refusal, or from when it lines up behind another call of this client,
// until it is about to return. Lock, Acquire, Campaign, Await, Do and the like are counted. Tries
// are not, nor are loops over [Election.Observe]. A [RedLock] counts in the client of its first member
// while it waits in line behind others of the program, and like a [MultiLock] from its first failed
// round on. While a MultiLock waits for one member, that wait counts under the kind of the member.
//
// [Client.Waiters] lists the waiters of one object in all processes.
func (c *Client) Waiting() map[Kind]int {
	now := map[Kind]int{}
	for kind, n := range c.engine.Waiting.Counts.Now {
		now[Kind(kind)] = n
	}
	return now
}
