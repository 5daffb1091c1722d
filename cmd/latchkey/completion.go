package main

import (
	"context"
	_ "embed"
	"io"

	"github.com/urfave/cli/v3"
)

// bashCompletion replaces the script of the cli library, which makes the shell evaluate the line that is being typed,
// and needs a package in addition to bash.
//
//go:embed completion.bash
var bashCompletion string

// configureCompletion makes the command of the cli library that writes completion scripts visible.
func configureCompletion(cmd *cli.Command) {
	cmd.Hidden = false
	cmd.Usage = "print a completion script for a shell"
	cmd.Description = `Completes commands and flags. Names of objects are not completed, because that would
need a scan of all keys of the server.

bash  in ~/.bashrc: source <(latchkey completion bash)
zsh   in ~/.zshrc, after compinit: source <(latchkey completion zsh)
fish  latchkey completion fish >~/.config/fish/completions/latchkey.fish
pwsh  latchkey completion pwsh >latchkey.ps1, and run that in your profile

  latchkey completion bash >/etc/bash_completion.d/latchkey`
	for _, shell := range cmd.Commands {
		name := shell.Name
		shell.Usage = "the script for " + name
		shell.Description = "See latchkey completion --help.\n\n  latchkey completion " + name
		if name == "bash" {
			shell.Action = func(_ context.Context, cmd *cli.Command) error {
				_, err := io.WriteString(cmd.Root().Writer, bashCompletion)
				return err
			}
		}
	}
	_ = cmd.Walk(complete)
}
