// Package permits is a model of permits, small enough to visit all of its states. A release of a
// plain semaphore calls the first of a line, and keeps permits for them for a moment. Permits with
// ids are granted to the first, with a short lease. The README of the folder above describes the
// protocol, the scripts that follow from it, and what the exploration has shown.
//
// Messages, faults and clients are as in the model of the hand-over. In addition a release or a
// withdrawal may be executed without calling anybody, as if the server had refused that, and the
// clock of the server may be wrong.
//
// The properties of each state are:
//
//   - The number plus what was taken is the total.
//   - A client relies on permits that it has taken, for no longer than the lease of permits with
//     ids.
//   - Nothing is taken for an operation that is over. Permits with ids may be, if a message was
//     lost.
//   - Nobody who has taken permits is in line, or has permits kept.
//   - Whoever is served is the oldest who waits and listens. Others may pass a large request only
//     until it has asked as the first, and while a bar rests.
//   - Whoever returns with a ticket is not put behind younger ones.
//   - Permits are kept for a poller only if it is about to ask.
//   - An ask leaves no permit free that is not kept for somebody and that somebody in line can
//     have.
//   - No permits are kept for an operation that is over, unless a message was lost.
//   - As long as nothing was lost and no mark was over, messages alone lead to a state in which
//     everybody was served who listens.
//   - From every state, time and polls lead there without further faults.
package permits
