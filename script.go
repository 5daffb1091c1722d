package latchkey

import (
	"strconv"

	"github.com/latchkey-go/latchkey/internal/transport"
	"github.com/latchkey-go/latchkey/lua"
)

// A command of a primitive is named after the folder and the file of its script in lua/. Others are
// named after the file, and end in Script if that name is a single word. The keys of
// lockAcquireQueued include the queue of the lock. The queue is optional: while its slot migrates,
// the keys may be on two nodes, and the lock is acquired and released without it, as other libraries
// do. mutexSet runs no file: it is SET NX PX.
var (
	lockAcquire       = together.Add(loadScript("lock/acquire"))
	lockAcquireQueued = lockAcquire.OptionalKeys(1, 2)
	lockRelease       = together.Add(loadScript("lock/release").Guarded().Reserved().OptionalKeys(1, 3))
	mutexSet          = together.Add(transport.Command{})
	mutexAcquire      = together.Add(loadScript("mutex/acquire").OptionalKeys(1, 2))
	mutexRelease      = together.Add(loadScript("mutex/release").Guarded().Reserved().OptionalKeys(1, 2))
	renewScript       = loadScript("shared/renew").Reserved()
	fairAcquire       = loadScript("fair/acquire").Guarded()
	fairRelease       = loadScript("fair/release").Guarded().Reserved()
	fairRefresh       = loadScript("fair/refresh").Guarded().Reserved()
	fairWaiters       = loadScript("fair/waiters")
	rwReadAcquire     = loadScript("rw/read_acquire").Guarded()
	rwReadRelease     = loadScript("rw/read_release").Guarded().Reserved().OptionalKeysGuarded(4, 5)
	rwWriteAcquire    = loadScript("rw/write_acquire").Guarded().OptionalKeysGuarded(4, 5)
	rwWriteRelease    = loadScript("rw/write_release").Guarded().Reserved().OptionalKeysGuarded(4, 5)
	rwDowngrade       = loadScript("rw/downgrade").Guarded().Reserved()
	rwRenew           = loadScript("rw/renew").Reserved()
	rwRenewKey        = loadScript("rw/renew_key").Reserved()
	rwEvict           = loadScript("rw/evict").Guarded().Reserved().OptionalKeysGuarded(4, 5)
	inspectScript     = loadScript("look/inspect")
	inspectNumber     = loadScript("look/inspect_number")
	lookScript        = loadScript("look/objects").OptionalKeys(1, lookKeys)
	listWaiters       = loadScript("queue/list_waiters").OptionalKeys(1, 2)
	semAcquire        = loadScript("semaphore/acquire").Guarded()
	semUndo           = loadScript("semaphore/undo").Guarded().Reserved()
	semRelease        = loadScript("semaphore/release").Guarded().Reserved()
	semSet            = loadScript("semaphore/set").Guarded()
	semDrain          = loadScript("semaphore/drain").Guarded()
	semExpire         = loadScript("semaphore/expire").Guarded()
	semStats          = loadScript("semaphore/stats")
	permitRelease     = loadScript("permit/release").Guarded().Reserved()
	permitRenew       = loadScript("permit/renew").Reserved()
	permitLease       = loadScript("permit/lease")
	permitUpdate      = loadScript("permit/update").Guarded()
	permitAcquire     = loadScript("permit/acquire").Guarded()
	permitLeave       = loadScript("permit/leave").Guarded().Reserved()
	permitRefresh     = loadScript("permit/refresh").Guarded().Reserved()
	permitWaiters     = loadScript("permit/waiters")
	opVoid            = loadScript("shared/op_void").Reserved()
	permitStats       = loadScript("permit/stats")
	permitHolders     = loadScript("permit/holders")
	permitSet         = loadScript("permit/set").Guarded()
	latchLook         = loadScript("latch/look").Guarded()
	latchSet          = loadScript("latch/set").Guarded()
	latchCount        = loadScript("latch/count").Guarded().Reserved()
	latchDelete       = loadScript("latch/delete").Guarded()
	electionLook      = loadScript("election/look").Guarded()
	electionAnnounce  = loadScript("election/announce").Guarded()
	electionRetire    = loadScript("election/retire").Guarded().Reserved()
	barrierArrive     = loadScript("barrier/arrive").Guarded()
	barrierReturn     = loadScript("barrier/return").Guarded().Reserved()
	barrierLook       = loadScript("barrier/look").Guarded().Reserved()
	barrierLeave      = loadScript("barrier/leave").Guarded().Reserved()
	barrierRenew      = loadScript("barrier/renew").Reserved()
	barrierReset      = loadScript("barrier/reset").Guarded().Reserved()
	barrierInspect    = loadScript("barrier/inspect")
	labelWrite        = loadScript("look/label_write")
	labelRead         = loadScript("look/label_read")
	touchScript       = loadScript("shared/touch")
)

// lookKeys is the number of keys that lua/look/objects.lua takes for each object.
const lookKeys = 11

// together groups the commands of the most used locks: those that goroutines of a client send at
// the same moment are sent as one.
var together = &transport.GroupScript{}

// loadScript reads lua/<name>.lua.
func loadScript(name string) transport.Command {
	return transport.NewScript(lua.Text(name))
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
