package model

import (
	"strconv"

	"github.com/latchkey-go/latchkey/internal/primitive/barrier"
)

// The parties of a Do in the barrier model.

// stage returns how a party arrives: as the other parties do, in most cases.
func (m *barrierModel) stage(d dice) string {
	switch {
	case m.open != nil && !m.runs() && d[3]%10 > 0:
		return m.open.stage
	case d[2]%5 > 0:
		return barrier.Enter
	}
	return ""
}

// runs reports whether the parties of a Do run their functions.
func (m *barrierModel) runs() bool { return m.open != nil && m.open.stage == barrier.Run }

// inside returns how many parties a generation has from the start.
func (g *barrierGeneration) inside() int {
	if g.stage == barrier.Run {
		return g.n
	}
	return 0
}

// run completes the first generation of a Do, and begins the second. Its parties are those of the
// first.
func (m *barrierModel) run(last string) {
	second := max(m.w.ms()*1000, m.last+1)
	m.record(barrier.Done, strconv.FormatInt(second, 10))
	m.begin(barrier.Run, second)
	m.join(last)
}

func isBusy(reply any) bool {
	words, is := reply.([]any)
	return is && words[0] == barrier.Busy
}

// enter moves a party to the second generation.
func (p *barrierParty) enter(first int64) {
	p.barrier.GenerationEnded(first)
	p.await.Sent.Done()
	p.await.Known = true
	p.await.GoOn()
	p.arrival, p.leaving = nil, nil
}

// comeBack has the function of a party return.
func (p *barrierParty) comeBack(fate int) {
	if !p.waits() || p.await.Stage != barrier.Run || p.await.Counted || p.arrival != nil {
		return
	}
	await, number, wire := p.await, numeral(p.await.View.Generation), p.await.Ownership.Wire
	p.arrival = p.message("returns", await.Returning(), true, func([]string) any { return p.m.returned(number, wire) })
	p.arrival.answered = func(reply any) {
		if p.await == await {
			p.await.Counted = true
			p.heard(reply)
		}
	}
	p.m.w.send(p.arrival, fate)
}

// returned is the reference of lua/barrier/look.lua for a party that arrives.
func (m *barrierModel) returned(number int64, party string) any {
	m.sync()
	if m.open == nil || m.open.number != number {
		return m.report(number, "")
	}
	switch {
	case m.waiting[party] == 0:
		m.end("lost", "")
	case !m.done[party]:
		m.done[party] = true
		if m.open.arrived++; m.open.arrived == m.open.n {
			m.end(barrier.Done, "")
		}
	}
	return m.report(number, "")
}
