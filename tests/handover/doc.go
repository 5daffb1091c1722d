// Package handover is a model of the hand-over of contended locks: how a release grants the
// lock to the next client in a queue, and how a client passes it on in memory. The model is small
// enough for all of its states to be visited: three clients, a network that delays, loses and
// doubles, clients that die and start again, a server that fails over, a stranger that knows
// nothing of the queue. README.md tells the protocol in full, with the scripts as they are to
// be written, and what the exploration has shown.
//
// Time passes in ticks for all at once. A command is executed, and a message arrives, after any
// number of them. What a client sends stays in order, as do the answers, and the messages, which
// have a connection of their own; that one overtakes another is a fault. Each run has a number
// of faults at most.
//
// What is looked at in each state:
//
//   - No two clients rely on the lock at once, by what each of them knows.
//   - What a client relies on, the server has given it, for at least as long.
//   - Tokens grow from holder to holder.
//   - No hold is passed on when the time of its turn is over.
//   - Nobody has the lock and a place in the queue at once: there is one grant at a time.
//   - If a grant runs out and nothing but the grant was lost, the first of the queue asks, or
//     knows when to.
//   - As long as nothing was lost, no lease has ended, and nobody was left in the queue by a release
//     without it, messages alone lead to everybody being served, also when commands are doubled or
//     late.
//   - From everywhere, time and polls lead there without further faults.
//
// The last two say that there is a way from each state. Since there are finitely many, a run
// that keeps trying everything that is possible takes one in the end.
//
// The protocol is explored with mistakes in it as well, each of which has to be found.
package handover
