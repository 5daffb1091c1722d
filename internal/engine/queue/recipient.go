package queue

// Waker receives the events that concern a waiter. Its methods must not block.
type Waker interface {
	// Signal wakes the waiter.
	Signal()
	// Reconnected is called when messages may have been lost.
	Reconnected()
}

// Granted implements [inbox.Recipient]: the server has given the lock to the owner.
func (e *Entry) Granted(token int64, since string) (wanted bool) {
	e.mu.Lock()
	wanted = !e.closed
	if wanted {
		e.grant = &Grant{token, e.Lease, since}
	}
	e.mu.Unlock()
	if wanted {
		e.Signal()
	}
	return wanted
}

// Signal implements [inbox.Recipient]: it wakes the waiter for the owner, so that it looks at its
// state.
func (e *Entry) Signal() { e.waker.Signal() }

// Query implements [inbox.Recipient]: the waiter for the owner queries the server, whatever is
// known of its place.
func (e *Entry) Query() {
	e.mustQuery()
	e.waker.Signal()
}

// Reconnected implements [inbox.Recipient].
func (e *Entry) Reconnected() {
	e.mustQuery()
	e.waker.Reconnected()
}

// mustQuery notes that the server must be queried about the owner. That holds even if the reply to
// the release that queued the owner arrives only now: messages after that release may have been
// lost.
func (e *Entry) mustQuery() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.known, e.unsure = false, true
}
