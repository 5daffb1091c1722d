package latchkey

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"slices"

	"github.com/redis/rueidis"
)

// command is a request that is safe to send twice with the same arguments: a
// script, or the plain SET NX PX. What makes each script so stands in its header.
type command struct {
	lua          *rueidis.Lua
	text, digest string       // of the script; empty for SET NX PX
	replication  *replication // by which replicas confirm it, or nil
	// tidies says that the command serves holds that exist, and goes before those
	// who want one.
	tidies bool
	// guarded says that in a cluster one key more is named, which never exists.
	guarded bool
}

// newScript returns the command that runs a Lua script, of which each key and argument is
// given when it is sent.
func newScript(text string) command {
	digest := sha1.Sum([]byte(text)) //nolint:gosec // by which Redis knows scripts
	return command{lua: rueidis.NewLuaScript(text), text: text, digest: hex.EncodeToString(digest[:])}
}

// send executes the command once. Scripts go by digest, with the text following
// if the server does not know it.
func (c command) send(ctx context.Context, client rueidis.Client, keys, args []string) rueidis.RedisResult {
	if c.lua == nil {
		return client.Do(ctx, client.B().Arbitrary("SET").Keys(keys[0]).Args(args[0], "NX", "PX", args[1]).Build())
	}
	return c.lua.Exec(ctx, client, c.keysFor(client, keys), args)
}

// reserved returns the command as it is sent for a hold that exists: it uses places among the
// commands in flight that those who want a hold cannot take.
func (c command) reserved() command {
	c.tidies = true
	return c
}

// guard returns the command as it has to be sent in a cluster if its script looks again at a
// key which it may have deleted. While the slot migrates, Redis would stop it there, with half of it done. A key among them
// that never exists has Redis refuse it before it begins.
func (c command) guard() command {
	c.guarded = true
	return c
}

// keysFor are the keys as they are sent.
func (c command) keysFor(client rueidis.Client, keys []string) []string {
	if !c.guarded || client.Mode() != rueidis.ClientModeCluster {
		return keys
	}
	return append(slices.Clip(keys), "latchkey_op:"+hashTag(keys[0])+":never")
}

// confirmed returns the command as it is sent if replicas have to confirm it; with nil nobody
// has to.
func (c command) confirmed(r *replication) command {
	c.replication = r
	return c
}
