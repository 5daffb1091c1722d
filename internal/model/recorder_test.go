package model

import (
	"context"
	"errors"
	"slices"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// recorder replaces the connection of a Client: it records what would be sent, and refuses it. It
// executes only looks, which change nothing, because later commands depend on their replies.
type recorder struct {
	rueidis.Client

	sent []string
}

func (r *recorder) Do(ctx context.Context, c rueidis.Completed) rueidis.RedisResult {
	words := c.Commands()
	if isCommand(script.LatchLook, words[1]) || isCommand(script.Look, words[1]) {
		return r.Client.Do(ctx, c)
	}
	if r.sent == nil { // the next command queries why the first was refused
		r.sent = slices.Clone(words)
		if words[0] == "EVAL" { // the first use of a script
			script := transport.NewScript(words[1])
			r.sent[0], r.sent[1] = "EVALSHA", script.Digest
		}
	}
	return rueidis.NewErrorResult(outcome.Refusal(errors.New("recorded")))
}

func isCommand(cmd transport.Command, word string) bool {
	return word == cmd.Digest || word == cmd.Text
}

func (*recorder) Mode() rueidis.ClientMode { return rueidis.ClientModeStandalone }
func (*recorder) Close()                   {}
