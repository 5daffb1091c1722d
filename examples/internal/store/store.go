// Package store opens the database of an example: SQLite, or the PostgreSQL whose URL is in
// LATCHKEY_SQL.
package store

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	_ "modernc.org/sqlite"             // the driver "sqlite"
)

// Open opens the database, and executes the statements that create the tables. It also returns the
// name of the database, and a function that executes the last statements and closes it.
func Open(ctx context.Context, first, last []string) (db *sql.DB, name string, done func() error, err error) {
	name, driver, source := "PostgreSQL", "pgx", os.Getenv("LATCHKEY_SQL")
	folder, err := os.MkdirTemp("", "latchkey-example")
	if err != nil {
		return nil, "", nil, err
	}
	if source == "" {
		name, driver, source = "SQLite", "sqlite", filepath.Join(folder, "example.db")
	}
	if db, err = sql.Open(driver, source); err != nil {
		return nil, "", nil, err
	}
	done = func() error {
		return errors.Join(execute(context.WithoutCancel(ctx), db, last), db.Close(), os.RemoveAll(folder))
	}
	if err := execute(ctx, db, append(last, first...)); err != nil {
		return nil, "", nil, errors.Join(err, done())
	}
	return db, name, done, nil
}

func execute(ctx context.Context, db *sql.DB, statements []string) error {
	for _, statement := range statements {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}
