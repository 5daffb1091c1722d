// Command idempotent serves payments that are made once for each Idempotency-Key, in two pods. The
// first pod is paused after its commit, and its answer is lost; the client repeats the request.
//
//	go run ./examples/idempotent
//	LATCHKEY_SQL=postgres://localhost/test go run ./examples/idempotent
//
// A Once lets one request with a key run at a time, and gives the others its answer. The payment is
// in SQLite, or in the PostgreSQL whose URL is in LATCHKEY_SQL, in one transaction with its key and
// the fencing token of the run that made it: docs/howto/idempotent-endpoint.md says why.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/examples/internal/fleet"
	"github.com/latchkey-go/latchkey/examples/internal/store"
)

const (
	dropPayments   = `DROP TABLE IF EXISTS latchkey_example_payment`
	dropBalance    = `DROP TABLE IF EXISTS latchkey_example_balance`
	createPayments = `CREATE TABLE latchkey_example_payment (
		id text PRIMARY KEY, token bigint NOT NULL, amount bigint NOT NULL)`
	createBalance = `CREATE TABLE latchkey_example_balance (amount bigint NOT NULL)`
	fill          = `INSERT INTO latchkey_example_balance (amount) VALUES (100)`
	insert        = `INSERT INTO latchkey_example_payment (id, token, amount) VALUES ($1, $2, $3) ON CONFLICT (id) DO NOTHING`
	find          = `SELECT token, amount FROM latchkey_example_payment WHERE id = $1`
	withdraw      = `UPDATE latchkey_example_balance SET amount = amount - $1`
	balance       = `SELECT amount FROM latchkey_example_balance`
)

const amount = 30 // of each payment

func main() { fleet.Main(run) }

func run(ctx context.Context, f *fleet.Fleet) (err error) {
	db, name, done, err := store.Open(ctx, []string{createPayments, createBalance, fill}, []string{dropPayments, dropBalance})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	fmt.Println("the payments are in", name)
	pods, err := f.Pods(ctx, 2, latchkey.Options{Lease: time.Second})
	if err != nil {
		return err
	}
	quick := func(context.Context) {}
	paused := func(ctx context.Context) { <-ctx.Done() }
	for _, e := range []*endpoint{
		{pod: pods[0], db: db, pause: paused, options: []latchkey.LockOption{latchkey.Lease(time.Second)}},
		{pod: pods[1], db: db, pause: quick},
		{pod: pods[0], db: db, pause: quick},
	} {
		status, answer, err := post(ctx, e, "order-42")
		if err != nil {
			return err
		}
		fmt.Println(status, answer)
	}
	var left int64
	err = db.QueryRowContext(ctx, balance).Scan(&left)
	fmt.Println("the balance is", left)
	return err
}

// endpoint makes payments in one pod.
type endpoint struct {
	pod     *latchkey.Client
	db      *sql.DB
	pause   func(context.Context) // between the commit and the end of the run
	options []latchkey.LockOption
}

// ServeHTTP makes the payment, or repeats the answer to an earlier request with its key.
func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("Idempotency-Key")
	if key == "" {
		http.Error(w, "Idempotency-Key is missing", http.StatusBadRequest)
		return
	}
	payment := e.pod.NewOnce("payment:"+key, 24*time.Hour)
	answer, err := payment.Do(r.Context(), func(ctx context.Context) ([]byte, error) {
		answer, err := e.pay(ctx, key, payment.HoldFrom(ctx).Token())
		e.pause(ctx)
		return answer, err
	}, append(e.options, latchkey.Wait(5*time.Second))...)
	switch {
	case err == nil:
		_, _ = w.Write(answer)
	case errors.Is(err, latchkey.ErrInvalid):
		http.Error(w, "the key cannot be used", http.StatusBadRequest)
	case errors.Is(err, latchkey.ErrNotAcquired):
		http.Error(w, "another request with this key is in progress", http.StatusConflict)
	default:
		http.Error(w, "repeat the request", http.StatusServiceUnavailable)
	}
}

// pay makes the payment in one transaction with its key. If an earlier run has committed, and could
// not store its answer, pay only repeats the answer.
func (e *endpoint) pay(ctx context.Context, key string, token int64) ([]byte, error) {
	tx, err := e.db.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after a commit
	inserted, err := tx.ExecContext(ctx, insert, key, token, amount)
	if err != nil {
		return nil, err
	}
	switch rows, err := inserted.RowsAffected(); {
	case err != nil:
		return nil, err
	case rows == 1:
		if _, err := tx.ExecContext(ctx, withdraw, amount); err != nil {
			return nil, err
		}
	}
	var by, paid int64
	if err := tx.QueryRowContext(ctx, find, key).Scan(&by, &paid); err != nil {
		return nil, err
	}
	if by != token {
		fmt.Println("an earlier run has paid:", by < token)
	}
	return fmt.Appendf(nil, "paid %d", paid), tx.Commit()
}

// post sends a payment to the pod, and returns the answer.
func post(ctx context.Context, e *endpoint, key string) (status int, answer string, err error) {
	server := httptest.NewServer(e)
	defer server.Close()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, http.NoBody)
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Idempotency-Key", key)
	reply, err := server.Client().Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = reply.Body.Close() }()
	body, err := io.ReadAll(reply.Body)
	return reply.StatusCode, strings.TrimSpace(string(body)), err
}
