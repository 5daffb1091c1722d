package latchkey

import (
	"embed"
	"maps"
	"strconv"
	"strings"

	"github.com/latchkey-go/latchkey/internal/transport"
)

//go:embed lua/*.lua
var luaFiles embed.FS

// Each command is named after its file, and ends in Script if that name is a single word. The keys of lockAcquireQueued
// include the queue of the lock. The queue is optional: while its slot migrates, the keys may be on two nodes, and the lock
// is acquired and released without it, as other libraries do. mutexSet runs no file: it is SET NX PX.
var (
	lockAcquire       = together.Add(loadScript("lock_acquire"))
	lockAcquireQueued = lockAcquire.OptionalKeys(1, 2)
	lockRelease       = together.Add(loadScript("lock_release").Guarded().Reserved().OptionalKeys(1, 3))
	mutexSet          = together.Add(transport.Command{})
	mutexAcquire      = together.Add(loadScript("mutex_acquire").OptionalKeys(1, 2))
	mutexRelease      = together.Add(loadScript("mutex_release").Guarded().Reserved().OptionalKeys(1, 2))
	renewScript       = loadScript("renew").Reserved()
	fairAcquire       = loadScript("fair_acquire").Guarded()
	fairRelease       = loadScript("fair_release").Guarded().Reserved()
	fairRefresh       = loadScript("fair_refresh").Guarded().Reserved()
	fairWaiters       = loadScript("fair_waiters")
	rwReadAcquire     = loadScript("rw_read_acquire").Guarded()
	rwReadRelease     = loadScript("rw_read_release").Guarded().Reserved().OptionalKeysGuarded(4, 5)
	rwWriteAcquire    = loadScript("rw_write_acquire").Guarded().OptionalKeysGuarded(4, 5)
	rwWriteRelease    = loadScript("rw_write_release").Guarded().Reserved().OptionalKeysGuarded(4, 5)
	rwDowngrade       = loadScript("rw_downgrade").Guarded().Reserved()
	rwRenew           = loadScript("rw_renew").Reserved()
	rwRenewKey        = loadScript("rw_renew_key").Reserved()
	rwEvict           = loadScript("rw_evict").Guarded().Reserved().OptionalKeysGuarded(4, 5)
	inspectScript     = loadScript("inspect")
	inspectNumber     = loadScript("inspect_number")
	lookScript        = loadScript("look").OptionalKeys(1, lookKeys)
	listWaiters       = loadScript("list_waiters").OptionalKeys(1, 2)
	semAcquire        = loadScript("sem_acquire").Guarded()
	semUndo           = loadScript("sem_undo").Guarded().Reserved()
	semRelease        = loadScript("sem_release").Guarded().Reserved()
	semSet            = loadScript("sem_set").Guarded()
	semDrain          = loadScript("sem_drain").Guarded()
	semExpire         = loadScript("sem_expire").Guarded()
	semStats          = loadScript("sem_stats")
	permitRelease     = loadScript("permit_release").Guarded().Reserved()
	permitRenew       = loadScript("permit_renew").Reserved()
	permitLease       = loadScript("permit_lease")
	permitUpdate      = loadScript("permit_update").Guarded()
	permitAcquire     = loadScript("permit_acquire").Guarded()
	permitLeave       = loadScript("permit_leave").Guarded().Reserved()
	permitRefresh     = loadScript("permit_refresh").Guarded().Reserved()
	permitWaiters     = loadScript("permit_waiters")
	opVoid            = loadScript("op_void").Reserved()
	permitStats       = loadScript("permit_stats")
	permitHolders     = loadScript("permit_holders")
	permitSet         = loadScript("permit_set").Guarded()
	latchLook         = loadScript("latch_look").Guarded()
	latchSet          = loadScript("latch_set").Guarded()
	latchCount        = loadScript("latch_count").Guarded().Reserved()
	latchDelete       = loadScript("latch_delete").Guarded()
	electionLook      = loadScript("election_look").Guarded()
	electionAnnounce  = loadScript("election_announce").Guarded()
	electionRetire    = loadScript("election_retire").Guarded().Reserved()
	barrierArrive     = loadScript("barrier_arrive").Guarded()
	barrierReturn     = loadScript("barrier_return").Guarded().Reserved()
	barrierLook       = loadScript("barrier_look").Guarded().Reserved()
	barrierLeave      = loadScript("barrier_leave").Guarded().Reserved()
	barrierRenew      = loadScript("barrier_renew").Reserved()
	barrierReset      = loadScript("barrier_reset").Guarded().Reserved()
	barrierInspect    = loadScript("barrier_inspect")
	labelWrite        = loadScript("label_write")
	labelRead         = loadScript("label_read")
	touchScript       = loadScript("touch")
)

// lookKeys is the number of keys that look.lua takes for each object.
const lookKeys = 11

// together groups the commands of the most used locks: those that goroutines of a client send at
// the same moment are sent as one.
var together = &transport.GroupScript{}

// loadScript reads lua/<name>.lua.
func loadScript(name string) transport.Command {
	return transport.NewScript(scriptText(name))
}

// scriptText returns a script with its fragments included and without its comments.
func scriptText(name string) string {
	var text strings.Builder
	include(&text, name, map[string]bool{})
	return text.String()
}

// include writes a file and the fragments that it needs, except those that its script has seen. What an indented line
// includes belongs to its block, and is not seen after it.
func include(text *strings.Builder, name string, seen map[string]bool) {
	raw, err := luaFiles.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic(err)
	}
	for line := range strings.Lines(string(raw)) {
		trimmed := strings.TrimSpace(line)
		fragment, includes := strings.CutPrefix(trimmed, "--@include ")
		switch {
		case includes && seen[fragment]:
		case includes && trimmed[0] != line[0]:
			include(text, fragment, maps.Clone(seen))
		case includes:
			seen[fragment] = true
			include(text, fragment, seen)
		case !strings.HasPrefix(trimmed, "--"):
			text.WriteString(line)
		}
	}
}

// call is a command with its keys and arguments.
type call struct {
	cmd        transport.Command
	keys, args []string
}

// add appends the keys and arguments of another call for the same script.
func (c *call) add(more call) {
	c.cmd = more.cmd
	c.keys = append(c.keys, more.keys...)
	c.args = append(c.args, more.args...)
}

// pageSize is how many elements of a list one request reads, so that a long list does not block the server.
const pageSize = 500

// readPages reads a list page by page. It gives read the positions of the first and the last element of a page, as
// arguments of a script. read returns the size of the whole list.
func readPages(read func(positions []string) (size int64, err error)) error {
	for from := 0; ; from += pageSize {
		size, err := read([]string{strconv.Itoa(from), strconv.Itoa(from + pageSize - 1)})
		if err != nil || int64(from+pageSize) >= size {
			return err
		}
	}
}
