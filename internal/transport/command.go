package transport

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"slices"
	"strconv"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/transport/nodes"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// Command is a request that is safe to send twice with the same arguments: a script, or the plain
// SET NX PX. The header of each script says why it is safe.
type Command struct {
	lua          *rueidis.Lua
	Text, Digest string       // of the script; empty for SET NX PX
	replication  *Replication // the replicas that confirm it, or nil
	// asText means that a script is sent as text, to a node that may not have it.
	asText bool
	// reserved means that the command serves existing holds, and takes one of the slots reserved
	// for them.
	reserved bool
	// guarded means that in a cluster the command names one more key, which never exists.
	guarded bool
	// The keys from optionalFrom up to optionalTo may be left out; none if optionalTo is 0.
	optionalFrom, optionalTo int
	unguardedWithout         bool // without them it is not guarded
	// It may be sent in a group with other commands of together, where it has this number.
	together *GroupScript
	number   int
}

// Call is a command with its keys and arguments.
type Call struct {
	Cmd        Command
	Keys, Args []string
}

// Add appends the keys and arguments of another call for the same script.
func (c *Call) Add(more Call) {
	c.Cmd = more.Cmd
	c.Keys = append(c.Keys, more.Keys...)
	c.Args = append(c.Args, more.Args...)
}

// Confirmed returns the call with confirmation by replicas, or without if r is nil.
func (c Call) Confirmed(r *Replication) Call {
	c.Cmd = c.Cmd.Confirmed(r)
	return c
}

// NewScript returns the command that runs a Lua script. Keys and arguments are given when it is
// sent.
func NewScript(text string) Command {
	digest := sha1.Sum([]byte(text)) //nolint:gosec // by which Redis knows scripts
	return Command{lua: rueidis.NewLuaScript(text), Text: text, Digest: hex.EncodeToString(digest[:])}
}

// firstTo returns the command in the form to send to a node now: a script goes as text the first
// time, because the server may not know it, and a digest would then cost a second request. Others
// that send it at the same moment send the digest, which usually arrives after the text. A server
// that has lost its scripts, or another in its place, requests the text.
func (c Command) firstTo(n *nodes.Node) Command {
	c.asText = c.lua != nil && !n.HasText(c.lua)
	return c
}

// slots returns the slots of a node from which the command takes one.
func (c Command) slots(n *nodes.Node) *nodes.InFlight {
	if c.reserved {
		return n.Reserved
	}
	return n.Ordinary
}

// Send executes the command once. It sends a script by digest, followed by the text if the server
// does not know it, or as text at once: see firstTo.
func (c Command) Send(ctx context.Context, client rueidis.Client, keys, args []string) rueidis.RedisResult {
	switch {
	case c.lua == nil:
		return client.Do(ctx, client.B().Arbitrary("SET").Keys(keys[0]).Args(args[0], "NX", "PX", args[1]).Build())
	case c.asText:
		return client.Do(ctx, c.eval(client.B(), c.keysFor(client, keys), args))
	}
	return c.lua.Exec(ctx, client, c.keysFor(client, keys), args)
}

// eval builds the command that sends the script, as text or by its digest.
func (c Command) eval(b rueidis.Builder, keys, args []string) rueidis.Completed {
	how, what := "EVALSHA", c.Digest
	if c.asText {
		how, what = "EVAL", c.Text
	}
	return b.Arbitrary(how, what, strconv.Itoa(len(keys))).Keys(keys...).Args(args...).Build()
}

// inFull returns the command for a node that may not know the script: as text.
func (c Command) inFull() Command {
	c.asText = true
	return c
}

// Reserved returns the command for an existing hold: it takes one of the slots that acquisitions
// cannot take.
func (c Command) Reserved() Command {
	c.reserved = true
	return c
}

// Guarded returns the command for a script that reads a key again after it may have deleted it.
// While the slot migrates in a cluster, Redis would stop the script there, half done. If one of its
// keys never exists, Redis refuses the script before it begins.
func (c Command) Guarded() Command {
	c.guarded = true
	return c
}

// OptionalKeys returns the command with optional keys: those at from up to, not including, to. They
// are left out if the server refuses all keys together, because their slot migrates and they are
// not on one node. A script whose keys were left out must not read any key again: it is not
// guarded.
func (c Command) OptionalKeys(from, to int) Command {
	c.optionalFrom, c.optionalTo, c.unguardedWithout = from, to, true
	return c
}

// OptionalKeysGuarded is OptionalKeys for a script that reads the remaining keys again.
func (c Command) OptionalKeysGuarded(from, to int) Command {
	c.optionalFrom, c.optionalTo = from, to
	return c
}

// withoutOptional returns the keys without the optional ones, or nil if that does not help after
// this refusal.
func (c Command) withoutOptional(keys []string, refusal error) []string {
	if c.optionalTo == 0 || len(keys) <= c.optionalFrom || !outcome.HasCode(refusal, "TRYAGAIN") {
		return nil
	}
	return slices.Delete(slices.Clone(keys), c.optionalFrom, min(c.optionalTo, len(keys)))
}

// keysFor returns the keys to send.
func (c Command) keysFor(client rueidis.Client, keys []string) []string {
	if !c.guarded || c.unguardedWithout && len(keys) == c.optionalFrom || client.Mode() != rueidis.ClientModeCluster {
		return keys
	}
	return append(slices.Clip(keys), "latchkey_op:"+keyspace.Tag(keys[0])+":never")
}

// Confirmed returns the command with confirmation by replicas, or without if r is nil.
func (c Command) Confirmed(r *Replication) Command {
	c.replication = r
	return c
}
