package transport

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"slices"
	"strconv"

	"github.com/redis/rueidis"
)

// Command is a request that is safe to send twice with the same arguments: a
// script, or the plain SET NX PX. What makes each script so stands in its header.
type Command struct {
	lua          *rueidis.Lua
	Text, Digest string       // of the script; empty for SET NX PX
	replication  *Replication // by which replicas confirm it, or nil
	// asText says that a script goes as text, to a node that is not known to have it.
	asText bool
	// reserved says that the command serves holds that exist, and takes a slot that is
	// reserved for such.
	reserved bool
	// guarded says that in a cluster one key more is named, which never exists.
	guarded bool
	// The keys from spareFrom up to spareTo may be left out; none if spareTo is 0.
	spareFrom, spareTo int
	bareSpared         bool // it is not guarded without them
	// It may go together with others of a script, which knows it by that number.
	together *GroupScript
	number   int
}

// NewScript returns the command that runs a Lua script, of which each key and argument is
// given when it is sent.
func NewScript(text string) Command {
	digest := sha1.Sum([]byte(text)) //nolint:gosec // by which Redis knows scripts
	return Command{lua: rueidis.NewLuaScript(text), Text: text, Digest: hex.EncodeToString(digest[:])}
}

// Send executes the command once. Scripts go by digest, with the text following
// if the server does not know it, or as text at once: see [Node.firstAsText].
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

// inFull returns a script as it is sent to a node that may not know it: as text.
func (c Command) inFull() Command {
	c.asText = true
	return c
}

// Reserved returns the command as it is sent for a hold that exists: it takes one of the
// slots that those who want a hold cannot take.
func (c Command) Reserved() Command {
	c.reserved = true
	return c
}

// Guarded returns the command as it has to be sent in a cluster if its script looks again at a
// key which it may have deleted. While the slot migrates, Redis would stop the script there,
// with half of it done. If one of its keys never exists, Redis refuses the script before it
// begins.
func (c Command) Guarded() Command {
	c.guarded = true
	return c
}

// Sparing returns the command as it is sent if its keys from one up to another may be left out.
// They are, if the server does not look at all of them together: because their slot migrates, and
// they are not on one node, or because the user may not use one of them. A script whose keys were
// left out must look at none again: it is not guarded.
func (c Command) Sparing(from, to int) Command {
	c.spareFrom, c.spareTo, c.bareSpared = from, to, true
	return c
}

// SparingGuarded is Sparing for a script that looks again at the keys that are left.
func (c Command) SparingGuarded(from, to int) Command {
	c.spareFrom, c.spareTo = from, to
	return c
}

// spared returns the keys without those that may be left out, or nil if that does not help after this
// refusal.
func (c Command) spared(keys []string, refusal error) []string {
	if c.spareTo == 0 || len(keys) <= c.spareFrom || !HasCode(refusal, "TRYAGAIN") && !HasCode(refusal, "NOPERM") {
		return nil
	}
	return slices.Delete(slices.Clone(keys), c.spareFrom, min(c.spareTo, len(keys)))
}

// keysFor are the keys as they are sent.
func (c Command) keysFor(client rueidis.Client, keys []string) []string {
	if !c.guarded || c.bareSpared && len(keys) == c.spareFrom || client.Mode() != rueidis.ClientModeCluster {
		return keys
	}
	return append(slices.Clip(keys), "latchkey_op:"+HashTag(keys[0])+":never")
}

// Confirmed returns the command as it is sent if replicas have to confirm it; with nil nobody
// has to.
func (c Command) Confirmed(r *Replication) Command {
	c.replication = r
	return c
}
