package latchkey

import (
	"context"
	"crypto/sha1" //nolint:gosec // by which Redis knows scripts
	"embed"
	"encoding/hex"
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
	rwReadAcquire  = loadScript("rw_read_acquire")
	rwReadRelease  = loadScript("rw_read_release").first()
	rwWriteAcquire = loadScript("rw_write_acquire")
	rwWriteRelease = loadScript("rw_write_release").first()
	rwDowngrade    = loadScript("rw_downgrade").first()
	rwRenew        = loadScript("rw_renew").first()
	rwEvict        = loadScript("rw_evict").first()
	inspectQuery   = loadScript("inspect")
	semAcquire     = loadScript("sem_acquire")
	semUndo        = loadScript("sem_undo").first()
	semRelease     = loadScript("sem_release").first()
	semSet         = loadScript("sem_set")
	semDrain       = loadScript("sem_drain")
	semDelete      = loadScript("sem_delete")
	semExpire      = loadScript("sem_expire")
	semAvailable   = loadScript("sem_available")
	permitAcquire  = loadScript("permit_acquire")
	permitLeave    = loadScript("permit_leave").first()
	permitRelease  = loadScript("permit_release").first()
	permitRenew    = loadScript("permit_renew").first()
	permitLease    = loadScript("permit_lease")
	permitUpdate   = loadScript("permit_update")
	opVoid         = loadScript("op_void").first()
	permitCount    = loadScript("permit_count")
	permitSet      = loadScript("permit_set")
	latchLook      = loadScript("latch_look")
	latchSet       = loadScript("latch_set")
	latchCount     = loadScript("latch_count").first()
	latchDelete    = loadScript("latch_delete")
	touchScript    = loadScript("touch")
)

// send executes the command once. Scripts go by digest, with the text following
// if the server does not know it.
func (c command) send(ctx context.Context, client rueidis.Client, keys, args []string) rueidis.RedisResult {
	if c.lua == nil {
		return client.Do(ctx, client.B().Arbitrary("SET").Keys(keys[0]).Args(args[0], "NX", "PX", args[1]).Build())
	}
	return c.lua.Exec(ctx, client, keys, args)
}

func (c command) first() command {
	c.tidies = true
	return c
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
