package async

// Signal sends on a channel that has room for one, and never blocks: one pending signal is enough.
func Signal(signals chan struct{}) {
	select {
	case signals <- struct{}{}:
	default:
	}
}

// IsClosed reports whether a channel on which nothing is sent is closed.
func IsClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
