// Command options passes every option to every family of calls. TestOptionsThatDoNotCompile builds
// it: exactly the marked lines are errors.
package main

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey"
)

func main() {}

func lock(ctx context.Context, l *latchkey.Lock, owner latchkey.Owner) {
	_, _ = l.Lock(ctx, latchkey.Wait(1), latchkey.Lease(1), latchkey.MaxHold(1), latchkey.As(owner))
	_, _ = l.Lock(ctx, latchkey.AtLeast(1))
	_, _ = l.TryLock(ctx, latchkey.AtLeast(1))
	_ = l.Do(ctx, nil, latchkey.AtLeast(1))
	_, _ = l.Lock(ctx, latchkey.TTL(time.Hour)) // error: LockOption
	_, _ = l.Lock(ctx, latchkey.AwaitSet())     // error: LockOption
	_, _ = l.Lock(ctx, latchkey.UnsetIsOpen())  // error: LockOption
	_, _ = l.TryLock(ctx, latchkey.Lease(1), latchkey.MaxHold(1), latchkey.As(owner))
	_, _ = l.TryLock(ctx, latchkey.Wait(1))       // error: TryLockOption
	_, _ = l.TryLock(ctx, latchkey.TTL(1))        // error: TryLockOption
	_, _ = l.TryLock(ctx, latchkey.AwaitSet())    // error: TryLockOption
	_, _ = l.TryLock(ctx, latchkey.UnsetIsOpen()) // error: TryLockOption
	_ = l.Do(ctx, nil, latchkey.Wait(1), latchkey.Lease(1), latchkey.MaxHold(1), latchkey.As(owner))
	_ = l.Do(ctx, nil, latchkey.TTL(1))     // error: LockOption
	_ = l.Do(ctx, nil, latchkey.AwaitSet()) // error: LockOption
}

func several(ctx context.Context, m *latchkey.MultiLock) {
	_, _ = m.Lock(ctx, latchkey.TTL(1))     // error: LockOption
	_, _ = m.TryLock(ctx, latchkey.Wait(1)) // error: TryLockOption
}

func barrier(ctx context.Context, b *latchkey.Barrier) {
	_, _ = b.Await(ctx, latchkey.Wait(1))
	_, _ = b.Await(ctx, latchkey.AwaitSet())   // error: WaitOption
	_, _ = b.Await(ctx, latchkey.Lease(1))     // error: WaitOption
	_ = b.Do(ctx, nil, latchkey.UnsetIsOpen()) // error: WaitOption
}

func semaphore(ctx context.Context, s *latchkey.Semaphore, owner latchkey.Owner) {
	_ = s.AcquireN(ctx, 1, latchkey.Wait(1), latchkey.AwaitSet())
	_ = s.AcquireN(ctx, 1, latchkey.Lease(1))   // error: AcquireOption
	_ = s.AcquireN(ctx, 1, latchkey.AtLeast(1)) // error: AcquireOption
	_ = s.AcquireN(ctx, 1, latchkey.As(owner))  // error: AcquireOption
	_ = s.AcquireN(ctx, 1, latchkey.TTL(1))     // error: AcquireOption
	_ = s.TryAcquireN(ctx, 1, latchkey.Wait(1)) // error: too many arguments
	_, _ = s.TrySetPermits(ctx, 1, latchkey.TTL(1))
	_, _ = s.TrySetPermits(ctx, 1, latchkey.Lease(1))   // error: SetOption
	_, _ = s.TrySetPermits(ctx, 1, latchkey.AwaitSet()) // error: SetOption
}

func permits(ctx context.Context, s *latchkey.PermitSemaphore, owner latchkey.Owner) {
	_, _ = s.Acquire(ctx, latchkey.Wait(1), latchkey.Lease(1), latchkey.MaxHold(1), latchkey.AwaitSet())
	_, _ = s.Acquire(ctx, latchkey.AtLeast(1)) // error: PermitOption
	_, _ = s.Acquire(ctx, latchkey.As(owner))  // error: PermitOption
	_, _ = s.Acquire(ctx, latchkey.TTL(1))     // error: PermitOption
	_ = s.Do(ctx, nil, latchkey.Wait(1), latchkey.Lease(1), latchkey.MaxHold(1), latchkey.AwaitSet())
	_ = s.Do(ctx, nil, latchkey.As(owner)) // error: PermitOption
	_, _ = s.TryAcquire(ctx, latchkey.Lease(1), latchkey.MaxHold(1))
	_, _ = s.TryAcquire(ctx, latchkey.Wait(1))        // error: TryPermitOption
	_, _ = s.TryAcquireN(ctx, 2, latchkey.AwaitSet()) // error: TryPermitOption
	_, _ = s.TrySetPermits(ctx, 1, latchkey.Wait(1))  // error: SetOption
}

func latch(ctx context.Context, l *latchkey.CountDownLatch) {
	_ = l.Await(ctx, latchkey.Wait(1), latchkey.AwaitSet())
	_ = l.Await(ctx, latchkey.UnsetIsOpen())
	_ = l.Await(ctx, latchkey.Lease(1)) // error: AwaitOption
	_ = l.Await(ctx, latchkey.TTL(1))   // error: AwaitOption
	_, _ = l.TrySetCount(ctx, 1, latchkey.TTL(1))
	_, _ = l.TrySetCount(ctx, 1, latchkey.Wait(1))       // error: SetOption
	_, _ = l.TrySetCount(ctx, 1, latchkey.UnsetIsOpen()) // error: SetOption
}
