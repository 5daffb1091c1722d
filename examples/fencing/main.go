// Command fencing withdraws money from an account in a database. The database refuses the write of
// a holder that was paused for longer than its lease.
//
//	go run ./examples/fencing
//	LATCHKEY_SQL=postgres://localhost/test go run ./examples/fencing
//
// The table is in SQLite, or in the PostgreSQL whose URL is in LATCHKEY_SQL. Each hold of a fenced
// lock has a larger token than all earlier holds. The row stores the largest token so far, and
// every write includes its own token: docs/howto/fencing.md says why both updates are needed.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/examples/internal/fleet"
	"github.com/latchkey-go/latchkey/examples/internal/store"
)

const (
	drop   = `DROP TABLE IF EXISTS latchkey_example_account`
	create = `CREATE TABLE latchkey_example_account (
		id bigint PRIMARY KEY, balance bigint NOT NULL, last_token bigint NOT NULL DEFAULT 0)`
	insert = `INSERT INTO latchkey_example_account (id, balance) VALUES (7, 100)`
	show   = `UPDATE latchkey_example_account SET last_token = $1 WHERE id = 7 AND last_token <= $1`
	read   = `SELECT balance FROM latchkey_example_account WHERE id = 7`
	write  = `UPDATE latchkey_example_account SET balance = $1 WHERE id = 7 AND last_token = $2`
)

var errFenced = errors.New("a later holder has written")

func main() { fleet.Main(run) }

func run(ctx context.Context, f *fleet.Fleet) (err error) {
	db, name, done, err := store.Open(ctx, []string{create, insert}, []string{drop})
	if err != nil {
		return err
	}
	fmt.Println("the account is in", name)
	defer func() { err = errors.Join(err, done()) }()
	pods, err := f.Pods(ctx, 2, latchkey.Options{})
	if err != nil {
		return err
	}

	// The first pod pauses between its last check of the lock and its write. In between, the second
	// pod withdraws.
	slow := func(ctx context.Context, hold *latchkey.Hold) (context.Context, error) {
		<-hold.Lost()
		fmt.Println("the first pod is paused for longer than its lease")
		return context.WithoutCancel(ctx), withdraw(ctx, db, pods[1], 50, quick) // the first pod has already checked
	}
	err = withdraw(ctx, db, pods[0], 30, slow, latchkey.Lease(time.Second))
	fmt.Println("the first pod learns that it lost the lock:", errors.Is(err, latchkey.ErrLost))
	fmt.Println("the database refuses its write:", errors.Is(err, errFenced))
	var balance int64
	err = db.QueryRowContext(ctx, read).Scan(&balance)
	fmt.Println("the balance is", balance)
	return err
}

// quick does not pause between the read and the write.
func quick(ctx context.Context, _ *latchkey.Hold) (context.Context, error) { return ctx, nil }

// withdraw takes an amount under the lock of the account. It calls between after its read, and
// writes with the context that between returns.
func withdraw(
	ctx context.Context, db *sql.DB, pod *latchkey.Client, amount int64,
	between func(context.Context, *latchkey.Hold) (context.Context, error), options ...latchkey.LockOption,
) error {
	account := pod.NewFencedLock("account:7")
	work := func(held context.Context) error {
		hold := account.HoldFrom(held)
		if err := update(db.ExecContext(held, show, hold.Token())); err != nil {
			return err
		}
		var balance int64
		if err := db.QueryRowContext(held, read).Scan(&balance); err != nil {
			return err
		}
		late, err := between(context.WithoutCancel(held), hold)
		if err != nil {
			return err
		}
		return update(db.ExecContext(late, write, balance-amount, hold.Token()))
	}
	return account.Do(ctx, work, options...)
}

// update returns errFenced if a statement has changed no row.
func update(result sql.Result, err error) error {
	if err != nil {
		return err
	}
	rows, err := result.RowsAffected()
	if err == nil && rows == 0 {
		return errFenced
	}
	return err
}
