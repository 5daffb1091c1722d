package ownership

// The goroutine at the front of a line may leave before it holds the lock. The next in line goes on with the
// owner that waits in the queue on the server, and keeps its place.

// GiveUp implements [line.Place].
func (o *Ownership) GiveUp() { o.Abandon(o.Entry.wanted) }
