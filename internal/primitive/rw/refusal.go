package rw

import (
	"errors"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// readRWRefusal reads the reply of lua/rw/refusal.lua: when to try again, and who holds the lock.
// first names those who go first if nobody holds the lock against the caller.
func readRWRefusal(a *acquire.Acquisition, ans transport.Answer, first string) (left time.Duration, err error) {
	reply, err := ans.Message.ToArray()
	if err != nil || len(reply) < 4 || len(reply) > 6 {
		return 0, script.ErrReply
	}
	ms, err := reply[0].AsInt64()
	mode, err1 := reply[1].ToString()
	field, err2 := reply[2].ToString()
	more, err3 := reply[3].ToString()
	if err := errors.Join(err, err1, err2, err3, a.ReadPlace(reply[4:], ans.Sent)); err != nil {
		return 0, errors.Join(script.ErrReply, err)
	}
	left = script.FromMillis(ms)
	busy := a.BusyWith(strings.TrimSuffix(field, identity.WriteSuffix), left)
	a.ByStranger = more == InRedisson
	if mode == "" {
		busy.Left, busy.First, busy.Here, busy.Inside = -1, first, false, busy.Here
		a.BehindOwnReader = busy.Inside
		return left, busy
	}
	busy.Reads = mode == "read"
	busy.Others = busy.Reads && (more == "others" || more == InRedisson && identity.IsOurs(field))
	return left, busy
}

// InRedisson is how the scripts say that a process of Redisson is among the holders of a read/write
// lock.
const InRedisson = "redisson"
