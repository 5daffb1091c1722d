// Package transport sends commands to a server, to the nodes of a cluster, or to the master
// that Sentinel names, and finds out what has become of them. It knows nothing of locks: its callers
// bring commands that are safe to send twice.
//
// A [Sender] repeats a command while the server is in trouble, within a time, and returns as
// soon as the caller's context ends, whatever rueidis does meanwhile: each node has bounds of
// its own for the commands in flight, and what is known of its connections decides whether a
// command may be sent on the caller's goroutine. [Classify] tells what the error of a command
// means; a [Generation] tells whether a command that was not answered can still be executed.
package transport
