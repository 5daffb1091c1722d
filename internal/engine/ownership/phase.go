package ownership

// Phase is the state of an ownership:
//
//	           granted         the last release begins            it is answered
//	acquiring ─────────▶ held ─────────────────────────▶ releasing ─────────▶ over
//	    │                  │                                 │                 ▲
//	    │ refused, late,   │ denied, lease over,             │ lease over,     │
//	    │ context ended    │ limit reached, Close            │ gone            │
//	    └──────────────────┴─────────────────────────────────┴─────────────────┘
//
// Re-entries, partial releases, renewals and extensions are sent while it is held, and do not
// change the phase. When it is releasing or over, only releases are sent.
type Phase uint8

// The phases, in their order.
const (
	Acquiring Phase = iota
	Held
	Releasing
	Over
)

// begun reports whether the ownership has been granted and is not over.
func (p Phase) begun() bool { return p == Held || p == Releasing }
