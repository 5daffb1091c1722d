package latchkey

import (
	"context"
	"crypto/sha1" //nolint:gosec // by which Redis knows scripts
	"embed"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/redis/rueidis"
)

//go:embed lua/*.lua
var luaFiles embed.FS

// command is a request that is safe to send twice with the same arguments: a
// script, or the plain SET NX PX. What makes each script so stands in its header.
type command struct {
	lua          *rueidis.Lua
	text, digest string // of the script
	acks         *acks  // who have to confirm it, or nil
	// tidies says that the command serves holds that exist, and goes before those
	// who want one.
	tidies bool
	// guarded says that in a cluster one key more is named, which never exists.
	guarded bool
}

var (
	lockAcquire    = loadScript("lock_acquire")
	lockRelease    = loadScript("lock_release").first()
	mutexSet       = command{}
	mutexAcquire   = loadScript("mutex_acquire")
	mutexRelease   = loadScript("mutex_release").first()
	renewScript    = loadScript("renew").first()
	fairAcquire    = loadScript("fair_acquire")
	fairRelease    = loadScript("fair_release").first()
	fairRefresh    = loadScript("fair_refresh").first()
	fairWaiters    = loadScript("fair_waiters")
	rwReadAcquire  = loadScript("rw_read_acquire").whole()
	rwReadRelease  = loadScript("rw_read_release").whole().first()
	rwWriteAcquire = loadScript("rw_write_acquire").whole()
	rwWriteRelease = loadScript("rw_write_release").whole().first()
	rwDowngrade    = loadScript("rw_downgrade").whole().first()
	rwRenew        = loadScript("rw_renew").first()
	rwRenewKey     = loadScript("rw_renew_key").first()
	rwEvict        = loadScript("rw_evict").whole().first()
	inspectQuery   = loadScript("inspect")
	inspectNumber  = loadScript("inspect_number")
	semAcquire     = loadScript("sem_acquire").whole()
	semUndo        = loadScript("sem_undo").whole().first()
	semRelease     = loadScript("sem_release").whole().first()
	semSet         = loadScript("sem_set").whole()
	semDrain       = loadScript("sem_drain").whole()
	semDelete      = loadScript("sem_delete").whole()
	semExpire      = loadScript("sem_expire").whole()
	semStats       = loadScript("sem_stats")
	permitAcquire  = loadScript("permit_acquire").whole()
	permitLeave    = loadScript("permit_leave").whole().first()
	permitRelease  = loadScript("permit_release").whole().first()
	permitRenew    = loadScript("permit_renew").first()
	permitLease    = loadScript("permit_lease")
	permitUpdate   = loadScript("permit_update").whole()
	opVoid         = loadScript("op_void").first()
	permitStats    = loadScript("permit_stats")
	permitSet      = loadScript("permit_set").whole()
	latchLook      = loadScript("latch_look").whole()
	latchSet       = loadScript("latch_set").whole()
	latchCount     = loadScript("latch_count").whole().first()
	latchDelete    = loadScript("latch_delete").whole()
	touchScript    = loadScript("touch")
)

// send executes the command once. Scripts go by digest, with the text following
// if the server does not know it.
func (c command) send(ctx context.Context, client rueidis.Client, keys, args []string) rueidis.RedisResult {
	if c.lua == nil {
		return client.Do(ctx, client.B().Arbitrary("SET").Keys(keys[0]).Args(args[0], "NX", "PX", args[1]).Build())
	}
	return c.lua.Exec(ctx, client, c.keysFor(client, keys), args)
}

func (c command) first() command {
	c.tidies = true
	return c
}

// whole is for a script of several keys that looks again at one which it may have deleted.
// While the slot migrates, Redis would stop it there, with half of it done. A key among them
// that never exists has Redis refuse it before it begins.
func (c command) whole() command {
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

// loadScript reads lua/<name>.lua. A script that is missing is a broken build.
func loadScript(name string) command {
	text := scriptText(name)
	digest := sha1.Sum([]byte(text)) //nolint:gosec // by which Redis knows scripts
	return command{lua: rueidis.NewLuaScript(text), text: text, digest: hex.EncodeToString(digest[:])}
}

// scriptText returns a script without its comments, which only the reader of the
// file needs, and with its fragments put in.
func scriptText(name string) string {
	raw, err := luaFiles.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic(err)
	}
	var text strings.Builder
	for line := range strings.Lines(string(raw)) {
		trimmed := strings.TrimSpace(line)
		if fragment, found := strings.CutPrefix(trimmed, "--@include "); found {
			text.WriteString(scriptText(fragment))
		} else if !strings.HasPrefix(trimmed, "--") {
			text.WriteString(line)
		}
	}
	return text.String()
}

// call is a command with everything that goes with it.
type call struct {
	cmd        command
	keys, args []string
}

// add makes one call of several for the same script.
func (c *call) add(more call) {
	c.cmd = more.cmd
	c.keys = append(c.keys, more.keys...)
	c.args = append(c.args, more.args...)
}
