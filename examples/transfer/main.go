// Command transfer moves money between accounts, in both directions at the same time.
//
//	go run ./examples/transfer
//
// A latchkey.MultiLock locks both accounts, always in the same order, so that transfers in opposite
// directions do not deadlock. A transfer that fails to lock one account holds neither.
package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/examples/internal/fleet"
)

var errFunds = errors.New("not enough money")

// bank has the balances, in a real program rows of a database. Transfers between different accounts
// may run at once.
type bank struct{ balance map[string]*int }

func main() { fleet.Main(run) }

func run(ctx context.Context, f *fleet.Fleet) error {
	pods, err := f.Pods(ctx, 2, latchkey.Options{})
	if err != nil {
		return err
	}
	b := bank{balance: map[string]*int{"ada": new(int), "ben": new(int)}}
	*b.balance["ada"], *b.balance["ben"] = 100, 100

	const each = 10
	errs := make(chan error, 2*each)
	var all sync.WaitGroup
	for range each {
		all.Go(func() { errs <- b.transfer(ctx, pods[0], "ada", "ben", 3) })
		all.Go(func() { errs <- b.transfer(ctx, pods[1], "ben", "ada", 2) })
	}
	all.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return err
		}
	}
	fmt.Printf("ada has %d, ben has %d\n", *b.balance["ada"], *b.balance["ben"])
	fmt.Println("a transfer of too much is refused:", errors.Is(b.transfer(ctx, pods[0], "ada", "ben", 1000), errFunds))
	return b.busy(ctx, pods)
}

// transfer moves money while it holds both accounts.
func (b bank) transfer(ctx context.Context, pod *latchkey.Client, from, to string, amount int) error {
	both := latchkey.NewMultiLock(pod.NewLock("account:"+from), pod.NewLock("account:"+to))
	return both.Do(ctx, func(ctx context.Context) error {
		switch {
		case ctx.Err() != nil: // a lock is lost: nothing was moved. The example fencing also refuses late writes
			return context.Cause(ctx)
		case *b.balance[from] < amount:
			return errFunds
		}
		*b.balance[from] -= amount
		*b.balance[to] += amount
		return nil
	}, latchkey.Wait(5*time.Second))
}

// busy shows a transfer that finds one of its accounts locked.
func (b bank) busy(ctx context.Context, pods []*latchkey.Client) (err error) {
	audit, err := pods[1].NewLock("account:ben").Lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, audit.Unlock(ctx)) }()
	ada, ben := pods[0].NewLock("account:ada"), pods[0].NewLock("account:ben")
	_, err = latchkey.NewMultiLock(ada, ben).TryLock(ctx)
	if !errors.Is(err, latchkey.ErrNotAcquired) {
		return fmt.Errorf("want ErrNotAcquired, got %w", err)
	}
	seen, err := ada.Inspect(ctx)
	fmt.Println("ben is locked elsewhere, and ada is free:", err == nil && !seen.Locked())
	return err
}
