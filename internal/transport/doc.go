// Package transport sends commands to a server, to the nodes of a cluster, or to the master that
// Sentinel names, and determines their outcome. It knows nothing of locks: its callers pass
// commands that are safe to send twice.
//
// A [Sender] repeats a command while the server is in trouble, for a limited time. It returns as
// soon as the caller's context ends, whatever rueidis does. Each node has its own limit for
// commands in flight, and the state of its connections decides whether a command may be sent on the
// caller's goroutine.
//
// Package nodes knows the nodes and their connections, package outcome says what the error of a
// command means, and package retry how long to rest before the next attempt.
package transport
