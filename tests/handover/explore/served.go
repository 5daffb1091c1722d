package explore

// stranded finds a state from which a waiter is never served. It first looks for a state in which
// nothing was lost so far and from which messages alone do not lead there, without a poll or the
// end of a lease or mark. Then it looks for any state from which time and polls do not lead there
// without further faults.
func (g *graph[S, T]) stranded() (wrong string, last int32) {
	if g.only == "" || g.only == Slow {
		served := g.served(true)
		for i := range g.states {
			if g.model.Calm(&g.states[i]) && !served[i] {
				return Slow, int32(i)
			}
		}
	}
	if g.only == "" || g.only == Stranded {
		served := g.served(false)
		for i := range g.states {
			if !served[i] {
				return Stranded, int32(i)
			}
		}
	}
	return "", -1
}

// served returns the states from which a way leads to a state where nobody waits. With prompt, that
// way must not need timers.
func (g *graph[S, T]) served(prompt bool) []bool {
	from, begin := g.backward(func(e edge) bool { return !prompt || e&byTimer == 0 })
	reached, todo := make([]bool, len(g.states)), []int32{}
	for i := range g.states {
		if g.model.Done(&g.states[i], prompt) {
			reached[i] = true
			todo = append(todo, int32(i))
		}
	}
	for len(todo) > 0 {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, j := range from[begin[i]:begin[i+1]] {
			if !reached[j] {
				reached[j] = true
				todo = append(todo, j)
			}
		}
	}
	return reached
}

// backward returns where the edges that count come from: those that lead to state i are
// from[begin[i]:begin[i+1]].
func (g *graph[S, T]) backward(counts func(edge) bool) (from []int32, begin []uint32) {
	begin = make([]uint32, len(g.states)+2) // shifted by one while it is filled
	for _, e := range g.edges {
		if counts(e) {
			begin[e&^byTimer+2]++
		}
	}
	for i := range g.states {
		begin[i+2] += begin[i+1]
	}
	from = make([]int32, begin[len(g.states)+1])
	for i := range g.states {
		for _, e := range g.edges[g.begin[i]:g.begin[i+1]] {
			if counts(e) {
				from[begin[e&^byTimer+1]] = int32(i)
				begin[e&^byTimer+1]++
			}
		}
	}
	return from, begin
}
