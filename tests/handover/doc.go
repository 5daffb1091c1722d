// Package handover is a model of the hand-over of contended locks: how a release grants the lock to
// the next client in a queue, and how a client passes it on in memory. The model is small enough to
// visit all of its states: three clients, a network that delays, loses and duplicates messages,
// clients that die and restart, a server that fails over, and a stranger that knows nothing of the
// queue. README.md describes the protocol in full, the scripts that follow from it, and what the
// exploration has shown.
//
// Time passes in ticks for everybody at once. Any number of ticks may pass before a command is
// executed or a message arrives. The commands of a client stay in order. So do the answers, and the
// messages, which have a connection of their own. It is a fault if one overtakes another. Each run
// has a maximum number of faults.
//
// The properties of each state are:
//
//   - No two clients rely on the lock at once, by what each of them knows.
//   - The server has granted a client whatever it relies on, for at least as long.
//   - Tokens grow from holder to holder.
//   - Nobody has the lock whose client has used up that owner and does nothing about it, unless
//     more was lost than the answer to a release.
//   - A poller is granted the lock only if it is about to ask.
//   - No hold is passed on after the time of its turn.
//   - Nobody has the lock and a place in the queue at once: there is only one grant at a time.
//   - If a grant expires and nothing but the grant was lost, the first of the queue asks, or
//     knows when to.
//   - As long as nothing was lost, no lease has ended, and no release without the queue has left
//     anybody in it, messages alone lead to a state in which everybody was served who listens,
//     even if commands are duplicated or late.
//   - From every state, time and polls lead there without further faults.
//
// The last two properties say that such a way exists from each state. Since there are finitely many
// states, a run that keeps trying everything possible takes that way in the end.
//
// The exploration also runs with mistakes in the protocol, and has to find each of them.
package handover
