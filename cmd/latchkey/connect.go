package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
)

const (
	defaultURL = "redis://localhost:6379"
	urlEnv     = "LATCHKEY_REDIS"

	// closeTimeout limits how long the program waits for the server at its end.
	closeTimeout = 5 * time.Second
)

func redisFlag() cli.Flag {
	return &cli.StringFlag{
		Name:        "redis",
		Usage:       "`URL` of the server",
		DefaultText: defaultURL,
		Sources:     cli.EnvVars(urlEnv),
	}
}

func verboseFlag() cli.Flag {
	return &cli.BoolFlag{Name: "verbose", Usage: "write the library's log to standard error"}
}

// serverURL returns the server of all commands but demo. An empty environment
// variable counts as unset.
func serverURL(cmd *cli.Command) string {
	if url := cmd.String("redis"); url != "" {
		return url
	}
	return defaultURL
}

// logger discards the log without --verbose: the commands report what matters
// themselves, once.
func logger(cmd *cli.Command) *slog.Logger {
	out := io.Discard
	if cmd.Bool("verbose") {
		out = cmd.Root().ErrWriter
	}
	return slog.New(slog.NewTextHandler(out, nil))
}

func connect(ctx context.Context, cmd *cli.Command, options latchkey.Options) (*latchkey.Client, error) {
	options.Logger = logger(cmd)
	client, err := latchkey.Connect(ctx, serverURL(cmd), options)
	return client, connectError(err)
}

// connectError adds what may be wrong with the URL, if the error shows that.
func connectError(err error) error {
	if err == nil {
		return nil
	}
	text := plainError{err}.Error()
	if server, _, found := strings.Cut(text, ": NOAUTH "); found {
		return exitWith(exitUnavailable, "%s: NOAUTH: the server requires a password; put it in the URL: redis://:PASSWORD@host", server)
	}
	if server, first, found := strings.Cut(text, ": server unavailable: received unknown message type: "); found {
		looks := map[string]string{"72": " (the answer looks like HTTP)", "60": " (the answer looks like HTML)"}[first] // H, <
		return exitWith(exitUnavailable, "%s: this is not Redis%s", server, looks)
	}
	if strings.Contains(text, "connection reset by peer") || strings.Contains(text, "after HELLO: EOF") {
		return exitWith(exitUnavailable, "%w (does the server require TLS (rediss://) or a client certificate?)", plainError{err})
	}
	return libraryError(err)
}

// query connects, calls ask, and closes the client.
func query(ctx context.Context, cmd *cli.Command, ask func(*latchkey.Client) error) error {
	client, err := connect(ctx, cmd, latchkey.Options{})
	if err != nil {
		return err
	}
	defer closeClient(client)
	return ask(client)
}

// closeClient uses a context of its own, because other contexts have ended when it
// is called. Holds that it cannot release end with their leases.
func closeClient(client *latchkey.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_ = client.Close(ctx)
}

// deletable is a semaphore or a latch.
type deletable interface {
	Name() string
	Delete(ctx context.Context) (bool, error)
}

// deleteReply is what --json prints after a deletion.
type deleteReply struct {
	Name  string `json:"name"`
	There bool   `json:"was_there"`
}

func deleteObject(ctx context.Context, cmd *cli.Command, object deletable) error {
	there, err := object.Delete(ctx)
	if err != nil {
		return libraryError(err)
	}
	out := cmd.Root().Writer
	if cmd.Bool("json") {
		return writeJSON(out, deleteReply{Name: object.Name(), There: there})
	}
	text := "did not exist"
	if there {
		text = "was deleted"
	}
	_, err = fmt.Fprintf(out, "%s %s\n", object.Name(), text)
	return err
}
