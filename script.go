package latchkey

import (

	//nolint:gosec // by which Redis knows scripts
	"embed"
	"strings"
)

//go:embed lua/*.lua
var luaFiles embed.FS

var (
	lockAcquire    = loadScript("lock_acquire")
	lockRelease    = loadScript("lock_release").reserved()
	mutexSet       = command{}
	mutexAcquire   = loadScript("mutex_acquire")
	mutexRelease   = loadScript("mutex_release").reserved()
	renewScript    = loadScript("renew").reserved()
	fairAcquire    = loadScript("fair_acquire")
	fairRelease    = loadScript("fair_release").reserved()
	fairRefresh    = loadScript("fair_refresh").reserved()
	fairWaiters    = loadScript("fair_waiters")
	rwReadAcquire  = loadScript("rw_read_acquire").guard()
	rwReadRelease  = loadScript("rw_read_release").guard().reserved()
	rwWriteAcquire = loadScript("rw_write_acquire").guard()
	rwWriteRelease = loadScript("rw_write_release").guard().reserved()
	rwDowngrade    = loadScript("rw_downgrade").guard().reserved()
	rwRenew        = loadScript("rw_renew").reserved()
	rwRenewKey     = loadScript("rw_renew_key").reserved()
	rwEvict        = loadScript("rw_evict").guard().reserved()
	inspectQuery   = loadScript("inspect")
	inspectNumber  = loadScript("inspect_number")
	semAcquire     = loadScript("sem_acquire").guard()
	semUndo        = loadScript("sem_undo").guard().reserved()
	semRelease     = loadScript("sem_release").guard().reserved()
	semSet         = loadScript("sem_set").guard()
	semDrain       = loadScript("sem_drain").guard()
	semDelete      = loadScript("sem_delete").guard()
	semExpire      = loadScript("sem_expire").guard()
	semStats       = loadScript("sem_stats")
	permitAcquire  = loadScript("permit_acquire").guard()
	permitLeave    = loadScript("permit_leave").guard().reserved()
	permitRelease  = loadScript("permit_release").guard().reserved()
	permitRenew    = loadScript("permit_renew").reserved()
	permitLease    = loadScript("permit_lease")
	permitUpdate   = loadScript("permit_update").guard()
	opVoid         = loadScript("op_void").reserved()
	permitStats    = loadScript("permit_stats")
	permitSet      = loadScript("permit_set").guard()
	latchLook      = loadScript("latch_look").guard()
	latchSet       = loadScript("latch_set").guard()
	latchCount     = loadScript("latch_count").guard().reserved()
	latchDelete    = loadScript("latch_delete").guard()
	touchScript    = loadScript("touch")
)

// loadScript reads lua/<name>.lua. A script that is missing is a broken build.
func loadScript(name string) command {
	return newScript(scriptText(name))
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
