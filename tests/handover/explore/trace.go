package explore

// Trace describes the steps of the way of a result, with the names that clients have at the start.
// The states of the way have the clients in another order. The last step is the one that is wrong.
func Trace[S comparable, T Step](m Model[S, T], r Result[S]) (lines []string) {
	_, names := m.Canonical(m.First())
	for i := 1; i < len(r.Way); i++ {
		var taken T
		var after S
		var order, later Order
		found := false
		m.Next(r.Way[i-1], func(step T, next S) {
			s, o := m.Canonical(next)
			if s == r.Way[i] && (!found || i == len(r.Way)-1 && step.Wrong() == r.Wrong) {
				taken, after, order, found = step, next, o, true
			}
		})
		lines = append(lines, m.Describe(taken, after, names))
		for to, from := range order {
			later[to] = names[from]
		}
		names = later
	}
	return lines
}
