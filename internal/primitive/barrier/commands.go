package barrier

import (
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/engine/script"
)

// The commands of a party.

// Arriving returns the command with which the party arrives.
func (p *Party) Arriving() script.Call {
	return script.NewCall(script.BarrierArrive, append(p.All(), p.Sent.Record),
		p.Sent.Number, p.Ownership.Wire, strconv.Itoa(p.Parties), p.Client.LeaseText(p.Request.Lease),
		p.Client.Publish, p.Names.Channel, strconv.FormatInt(p.lastOver.Load(), 10), p.Stage)
}

// Looking returns the query for the outcome of the party's generation.
func (p *Party) Looking() script.Call {
	member := p.Ownership.Wire
	if p.Counted {
		member = Returned + member
	}
	return script.NewCall(script.BarrierLook, p.All(),
		p.View.Generation, member, p.Client.Publish, p.Names.Channel)
}

// Leaving returns the command with which the party leaves.
func (p *Party) Leaving(why string) script.Call {
	if p.Known {
		return script.NewCall(script.BarrierLeave, p.All(),
			p.Ownership.Wire, p.View.Generation, "", why, p.Client.Publish, p.Names.Channel)
	}
	return script.NewCall(script.BarrierLeave, append(p.All(), p.Sent.Record),
		p.Ownership.Wire, "", p.Sent.Number, why, p.Client.Publish, p.Names.Channel)
}

// Protocol renews the name of a party among the waiting parties as if it were a hold. Await
// itself arrives and leaves.
type Protocol struct{ Of *Barrier }

// ReleaseCall implements [ownership.Protocol].
func (Protocol) ReleaseCall(*ownership.Ownership, ownership.Release, []string) script.Call {
	return script.Call{}
}

// RenewalCall implements [ownership.Protocol].
func (b Protocol) RenewalCall(o *ownership.Ownership, lease time.Duration) script.Call {
	return script.NewCall(script.BarrierRenew, []string{b.Of.Names.Key, b.Of.Waiting}, o.Wire, script.MillisText(lease))
}

// wakeParties has the parties of a client query how their generations ended, because the
// server no longer lists one of them as waiting.
func wakeParties(o *ownership.Ownership) {
	shared := line.Key{Kind: keyspace.KindBarrier, Key: o.Protocol.(Protocol).Of.Names.Key}
	if q := o.Client.Lines.Known(shared); q != nil {
		q.WakeFronts()
	}
}
