package script

import (
	"github.com/latchkey-go/latchkey/internal/transport"
	"github.com/latchkey-go/latchkey/lua"
)

// The commands. Each is named after the folder and the file of its script in lua/, or after the
// file alone if the folder is shared, look or queue. The keys of LockAcquireQueued include the
// queue of the lock. The queue is optional: while its slot migrates, the keys may be on two nodes,
// and the lock is acquired and released without it, as other libraries do. MutexSet runs no file:
// it is SET NX PX.
var (
	LockAcquire       = together.Add(loadScript("lock/acquire"))
	LockAcquireQueued = LockAcquire.OptionalKeys(1, 2)
	LockRelease       = together.Add(loadScript("lock/release").Guarded().Reserved().OptionalKeys(1, 3))
	MutexSet          = together.Add(transport.Command{})
	MutexAcquire      = together.Add(loadScript("mutex/acquire").OptionalKeys(1, 2))
	MutexRelease      = together.Add(loadScript("mutex/release").Guarded().Reserved().OptionalKeys(1, 2))
	Renew             = loadScript("shared/renew").Reserved()
	FairAcquire       = loadScript("fair/acquire").Guarded()
	FairRelease       = loadScript("fair/release").Guarded().Reserved()
	FairRefresh       = loadScript("fair/refresh").Guarded().Reserved()
	FairWaiters       = loadScript("fair/waiters")
	RWReadAcquire     = loadScript("rw/read_acquire").Guarded()
	RWReadRelease     = loadScript("rw/read_release").Guarded().Reserved().OptionalKeysGuarded(4, 5)
	RWWriteAcquire    = loadScript("rw/write_acquire").Guarded().OptionalKeysGuarded(4, 5)
	RWWriteRelease    = loadScript("rw/write_release").Guarded().Reserved().OptionalKeysGuarded(4, 5)
	RWDowngrade       = loadScript("rw/downgrade").Guarded().Reserved()
	RWRenew           = loadScript("rw/renew").Reserved()
	RWRenewKey        = loadScript("rw/renew_key").Reserved()
	RWEvict           = loadScript("rw/evict").Guarded().Reserved().OptionalKeysGuarded(4, 5)
	Look              = loadScript("look/objects").OptionalKeys(1, lookKeys)
	ListWaiters       = loadScript("queue/list_waiters").OptionalKeys(1, 2)
	SemAcquire        = loadScript("semaphore/acquire").Guarded()
	SemUndo           = loadScript("semaphore/undo").Guarded().Reserved()
	SemRelease        = loadScript("semaphore/release").Guarded().Reserved()
	SemSet            = loadScript("semaphore/set").Guarded()
	SemDrain          = loadScript("semaphore/drain").Guarded()
	SemExpire         = loadScript("semaphore/expire").Guarded()
	PermitRelease     = loadScript("permit/release").Guarded().Reserved()
	PermitRenew       = loadScript("permit/renew").Reserved()
	PermitLease       = loadScript("permit/lease")
	PermitUpdate      = loadScript("permit/update").Guarded()
	PermitAcquire     = loadScript("permit/acquire").Guarded()
	PermitLeave       = loadScript("permit/leave").Guarded().Reserved()
	PermitRefresh     = loadScript("permit/refresh").Guarded().Reserved()
	PermitWaiters     = loadScript("permit/waiters")
	OpVoid            = loadScript("shared/op_void").Reserved()
	PermitHolders     = loadScript("permit/holders")
	PermitSet         = loadScript("permit/set").Guarded()
	LatchLook         = loadScript("latch/look").Guarded()
	LatchSet          = loadScript("latch/set").Guarded()
	LatchCount        = loadScript("latch/count").Guarded().Reserved()
	LatchDelete       = loadScript("latch/delete").Guarded()
	ElectionLook      = loadScript("election/look").Guarded()
	ElectionAnnounce  = loadScript("election/announce").Guarded()
	ElectionRetire    = loadScript("election/retire").Guarded().Reserved()
	BarrierArrive     = loadScript("barrier/arrive").Guarded()
	BarrierLook       = loadScript("barrier/look").Guarded().Reserved()
	BarrierLeave      = loadScript("barrier/leave").Guarded().Reserved()
	BarrierRenew      = loadScript("barrier/renew").Reserved()
	BarrierReset      = loadScript("barrier/reset").Guarded().Reserved()
	BarrierInspect    = loadScript("barrier/inspect")
	OnceAcquire       = loadScript("once/acquire").Guarded()
	OnceFinish        = loadScript("once/finish").Guarded().Reserved()
	OnceRelease       = loadScript("once/release").Guarded().Reserved()
	OnceLook          = loadScript("once/look").Guarded()
	OnceForget        = loadScript("once/forget").Guarded()
	RateTake          = loadScript("rate/take")
	RateCancel        = loadScript("rate/cancel").Guarded().Reserved()
	RateSet           = loadScript("rate/set").Guarded()
	LabelWrite        = loadScript("look/label_write")
	LabelRead         = loadScript("look/label_read")
	Touch             = loadScript("shared/touch")
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
