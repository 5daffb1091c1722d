package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v3"
)

func versionCommand() *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "print the version of this program and its Go version",
		Description: `Include it in bug reports.

  latchkey version`,
		Action: func(_ context.Context, cmd *cli.Command) error {
			_, err := fmt.Fprintf(cmd.Root().Writer, "latchkey %s %s\n", version(), runtime.Version())
			return err
		},
	}
}

// versionOfRelease is the version of a binary that goreleaser has built. The linker sets it,
// because the go command records no version in a binary that it builds in a workspace.
var versionOfRelease string

// version returns the version of the release, or the version of the module that the go command
// recorded in the binary.
func version() string {
	if versionOfRelease != "" {
		return versionOfRelease
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}
