package latchkey

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/base/request"
)

// NoExpiry is the duration of something that does not end: the longest [time.Duration], so it
// compares as longer than every lease and every TTL. Do not add to it. As an argument, it is
// accepted by [Lease] for a permit, by [PermitSemaphore.SetLease], and by SetTTL of semaphores. The
// TTL of a lock is NoExpiry only if the key is damaged.
const NoExpiry = lease.NoExpiry

// A LockOption is an option of [Lock.Lock]: [Wait], or a TryLockOption. In every call, the last of
// equal options counts.
type LockOption interface {
	setting() request.Setting
	forLock()
}

// A TryLockOption is an option of [Lock.TryLock]: [Lease], [MaxHold], [AtLeast], [As] or [Note].
type TryLockOption interface {
	LockOption
	forTryLock()
}

// An AcquireOption is an option of [Semaphore.AcquireN]: [Wait] or [AwaitSet].
type AcquireOption interface {
	setting() request.Setting
	forAcquire()
}

// A PermitOption is an option of [PermitSemaphore.Acquire]: [Wait], [AwaitSet], [Lease], [MaxHold]
// or [Note].
type PermitOption interface {
	setting() request.Setting
	forPermit()
}

// A TryPermitOption is an option of [PermitSemaphore.TryAcquire]: [Lease], [MaxHold] or [Note].
type TryPermitOption interface {
	PermitOption
	forTryPermit()
}

// An AwaitOption is an option of [CountDownLatch.Await]: [Wait], [AwaitSet] or [UnsetIsOpen].
type AwaitOption interface {
	setting() request.Setting
	forAwait()
}

// A SetOption is an option of a call that sets the permits of a semaphore or the count of a latch:
// [TTL].
type SetOption interface {
	setting() request.Setting
	forSet()
}

// A WaitOption is the result of [Wait], and an option of [Barrier.Await].
type WaitOption interface {
	LockOption
	AcquireOption
	PermitOption
	AwaitOption
}

// A holdOption is the result of [Lease], [MaxHold] or [Note].
type holdOption interface {
	TryLockOption
	TryPermitOption
}

// An awaitSetOption is the result of [AwaitSet].
type awaitSetOption interface {
	AcquireOption
	PermitOption
	AwaitOption
}

// Wait bounds how long an acquisition waits, in addition to its context. It does not bound the work
// under the lock. d must be positive: a call that must not wait at all is TryLock or TryAcquire.
func Wait(d time.Duration) WaitOption { return option{Kind: request.Wait, D: d} }

// Lease gives the hold a fixed lease: it is not renewed, and the hold is lost when d has passed.
// Fractions of a millisecond are rounded up. On a re-entry, the lease can only lengthen that of the
// outer hold. Only a permit may have the lease NoExpiry, which does not end: if its holder crashes,
// the permit is gone for good.
func Lease(d time.Duration) holdOption { return option{Kind: request.Lease, D: d} }

// MaxHold limits a renewed hold to d: the key ends on the server after d, and the contexts of the
// hold end with ErrMaxHold a drift margin before that. On an outermost hold the limit also binds
// all re-entries; on a re-entry it binds that hold alone. With [Lease], which must not be longer,
// it limits what [Hold.Extend] can reach.
func MaxHold(d time.Duration) holdOption { return option{Kind: request.MaxHold, D: d} }

// AtLeast keeps the lock taken for at least d from when the server grants it, even after Unlock,
// [Client.Close] or a crash. Until then nobody can acquire it, including the former owner. Use it
// for work that runs once in a fleet whose clocks differ, such as a cron job.
//
// The lock may stay taken for longer: as long as it is held, and for the lease if an early release
// never reaches the server. The lease of the acquisition is at least d; a shorter [Lease] or
// [MaxHold] is an ErrInvalid.
//
// Unlock ends the hold at once, and returns nil. Holds with AtLeast are not passed on inside a
// client. Re-entries have no such time of their own. [Client.Inspect] shows a lock that stays taken
// by [Holder].Kept. ForceUnlock frees it. If the acquisition returns an error, nothing stays taken.
// The option is an ErrInvalid for readers, a [MultiLock], an [Election] and a [Once].
func AtLeast(d time.Duration) TryLockOption { return option{Kind: request.AtLeast, D: d} }

// As acquires for an owner: if the owner holds the lock, the acquisition is a re-entry. With an
// owner that another process made, the hold is that of a guest: the lock is free when both have
// released it. To hand a lock over, the new process acquires it with As, then the old one unlocks.
// A guest needs the owner that [Hold.Share] returns. If the owner is a thread of Redisson, its
// lease must not be shorter than its guest's: every operation of it sets the time of the lock to
// its own lease.
func As(owner Owner) TryLockOption {
	return option{Kind: request.As, Owner: identity.Owner(owner)}
}

// Note attaches a text for people to a hold, such as "order 42". [Client.Inspect], the lists of the
// command line and [PermitSemaphore.Holders] show it while the hold lasts. The text must be
// printable and have at most 256 bytes; otherwise the acquisition returns ErrInvalid, as it does
// for a guest ([As]) and for a client with [NoLabel].
//
// The client sends the note in the background; others see it some milliseconds later. If that
// fails, the note is missing. If an owner has several holds, the latest note counts. In a lock of
// several members, each member has the note.
func Note(text string) holdOption { return option{Kind: request.Note, Note: text} }

// AwaitSet makes a call that waits for a semaphore or a latch also wait until somebody sets its
// permits or its count, instead of failing with ErrNotSet.
func AwaitSet() awaitSetOption { return option{Kind: request.AwaitSet} }

// TTL sets the time after which a semaphore or a latch is gone.
func TTL(d time.Duration) SetOption { return option{Kind: request.TTL, D: d} }

// UnsetIsOpen makes Await succeed if the latch is not there, as Redisson's does: Redisson has
// opened it, nobody has set its count, it was deleted, or its TTL has ended, even during the wait.
// It excludes [AwaitSet].
func UnsetIsOpen() AwaitOption { return option{Kind: request.UnsetIsOpen} }

// option implements every option. The interfaces above tell the compiler which call takes which
// option.
type option request.Setting

func (o option) setting() request.Setting { return request.Setting(o) }

func (option) forLock()      {}
func (option) forTryLock()   {}
func (option) forAcquire()   {}
func (option) forPermit()    {}
func (option) forTryPermit() {}
func (option) forAwait()     {}
func (option) forSet()       {}

// usualOptions is an upper limit of the options of most calls.
const usualOptions = 4

// settingsOf returns the settings of one call. A nil option becomes the zero setting.
func settingsOf[O interface{ setting() request.Setting }](options []O) []request.Setting {
	return appendSettings(nil, options)
}

// usualSettings is settingsOf for calls that are frequent. It is inlined, so that up to
// usualOptions settings fit on the stack of the caller.
func usualSettings[O interface{ setting() request.Setting }](options []O) []request.Setting {
	return appendSettings(make([]request.Setting, 0, usualOptions), options)
}

// appendSettings is settingsOf for a caller that provides the room.
func appendSettings[O interface{ setting() request.Setting }](to []request.Setting, options []O) []request.Setting {
	for _, o := range options {
		s := request.Setting{}
		if any(o) != nil {
			s = o.setting()
		}
		to = append(to, s)
	}
	return to
}
