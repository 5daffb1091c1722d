package main

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
)

const (
	defaultURL = "redis://localhost:6379"
	urlEnv     = "LATCHKEY_REDIS"

	// closeTimeout bounds how long the end of the program waits for the server.
	closeTimeout = 5 * time.Second
)

func redisFlag() cli.Flag {
	return &cli.StringFlag{
		Name:        "redis",
		Usage:       "`URL` of the server: redis, rediss, unix, valkey or valkeys",
		DefaultText: defaultURL + ", for demo an embedded server",
		Sources:     cli.EnvVars(urlEnv),
	}
}

func verboseFlag() cli.Flag {
	return &cli.BoolFlag{Name: "verbose", Usage: "write what the library logs to standard error"}
}

func jsonFlag() cli.Flag {
	return &cli.BoolFlag{Name: "json", Usage: "write the answer as JSON"}
}

// serverURL is where all commands but demo go. An empty variable in the
// environment counts as none.
func serverURL(cmd *cli.Command) string {
	if url := cmd.String("redis"); url != "" {
		return url
	}
	return defaultURL
}

// logger is silent unless asked for: what matters is told by the commands
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
	return client, libraryError(err)
}

// query connects for the time of one question.
func query(ctx context.Context, cmd *cli.Command, ask func(*latchkey.Client) error) error {
	client, err := connect(ctx, cmd, latchkey.Options{})
	if err != nil {
		return err
	}
	defer closeClient(client)
	return ask(client)
}

// closeClient has its own context: it is called at the end, when others are over.
// What it cannot release ends with its lease.
func closeClient(client *latchkey.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_ = client.Close(ctx)
}

// oneName returns the only argument of a command.
func oneName(cmd *cli.Command) (string, error) {
	if cmd.Args().Len() != 1 {
		return "", usageError("%s takes exactly one NAME, not %d; see %s --help",
			cmd.Name, cmd.Args().Len(), cmd.FullName())
	}
	return cmd.Args().First(), nil
}
