package identity

import "strings"

// Holder is an owner that holds a lock, as it is in Redis.
type Holder struct {
	Owner Owner
	Count int  // how often the owner has entered, starting at 1
	Write bool // it writes
	Kept  bool // it has released the lock, which stays taken
}

// KeptSuffix follows, in Redis, an owner whose lock stays taken after its release.
const KeptSuffix = ":kept"

// WriteSuffix follows an owner that writes, in the hash of a read/write lock.
const WriteSuffix = ":write"

// ReadHolder reads a holder as it is in Redis. sided says whether the lock has two sides.
func ReadHolder(text string, count int, sided bool) Holder {
	h := Holder{Count: count}
	if sided {
		text, h.Write = strings.CutSuffix(text, WriteSuffix)
	}
	if owner, kept := strings.CutSuffix(text, KeptSuffix); kept && Of(owner).Reentrant() {
		text, h.Kept = owner, true
	}
	h.Owner = Of(text)
	return h
}

// Field returns the holder as it is in Redis.
func (h Holder) Field() string {
	text := h.Owner.String()
	if h.Kept {
		text += KeptSuffix
	}
	if h.Write {
		text += WriteSuffix
	}
	return text
}
