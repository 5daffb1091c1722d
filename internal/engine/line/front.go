package line

// Front is the front of a line that may not exist yet, or no more. Its methods wake it if there is
// one.
type Front struct {
	Table *Table
	Key   Key
	Side  Side
}

// Signal is Signal of the line.
func (f *Front) Signal() {
	if q := f.Table.KnownSide(f.Key, f.Side); q != nil {
		q.Signal()
	}
}

// Reconnected is Reconnected of the line.
func (f *Front) Reconnected() {
	if q := f.Table.KnownSide(f.Key, f.Side); q != nil {
		q.Reconnected()
	}
}
