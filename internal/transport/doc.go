// Package transport sends commands to a server, to the nodes of a cluster, or to the master that
// Sentinel names, and determines their outcome. It knows nothing of locks: its callers pass
// commands that are safe to send twice.
//
// A [Sender] repeats a command while the server is in trouble, for a limited time. It returns as
// soon as the caller's context ends, whatever rueidis does. Each node has its own limit for
// commands in flight, and the state of its connections decides whether a command may be sent on the
// caller's goroutine.
//
// One command goes through these files:
//
//	call.go       repeats it until it is answered, and remembers whether it may be executed late;
//	              each time takes a slot among the commands in flight, and goes on without the
//	              answer of a silent server
//	groupsend.go  puts it into one script with others that are sent at the same moment
//	command.go    sends a script by its digest, or as text to a server that does not know it (NOSCRIPT)
//	delivery.go   lets the caller leave while the command is in flight
//
// The others send queries (query.go), many commands in one round trip (pipeline.go), and commands
// that replicas confirm (replication.go), and follow the slots of a cluster (learn.go,
// redirect.go).
//
// Package nodes knows the nodes and their connections, package outcome says what the error of a
// command means, and package retry how long to rest before the next attempt.
package transport
