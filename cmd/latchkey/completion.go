package main

import (
	"context"
	"embed"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
)

// completionScripts replace those of the cli library: its script for bash makes the shell evaluate
// the line that is being typed, and those for zsh and fish break a name at its first colon.
//
//go:embed completion.bash completion.zsh completion.fish
var completionScripts embed.FS

// configureCompletion makes the command of the cli library that writes completion scripts visible.
func configureCompletion(cmd *cli.Command) {
	cmd.Hidden = false
	cmd.Usage = "print a completion script for a shell"
	cmd.Description = `Completes commands and flags, and in bash, zsh and fish the names of objects. For names
it scans the keys of the server, for at most a second at each request. It leaves out
names that a shell would have to quote.

bash  in ~/.bashrc: source <(latchkey completion bash)
zsh   in ~/.zshrc, after compinit: source <(latchkey completion zsh)
fish  latchkey completion fish >~/.config/fish/completions/latchkey.fish
pwsh  latchkey completion pwsh >latchkey.ps1, and run that in your profile

  latchkey completion bash >/etc/bash_completion.d/latchkey`
	for _, shell := range cmd.Commands {
		name := shell.Name
		shell.Usage = "the script for " + name
		shell.Description = "See latchkey completion --help.\n\n  latchkey completion " + name
		if script, err := completionScripts.ReadFile("completion." + name); err == nil {
			shell.Action = func(_ context.Context, cmd *cli.Command) error {
				_, err := cmd.Root().Writer.Write(script)
				return err
			}
		}
	}
	_ = cmd.Walk(complete)
}

// completeEnv is set by the scripts that can read names.
const completeEnv = "LATCHKEY_COMPLETE"

// completionPatience is how long a user waits for names after the key Tab.
const completionPatience = time.Second

// unquoted matches the names that no shell expands.
var unquoted = regexp.MustCompile(`^[\w{][\w:./@{}-]*$`)

// takesName reports whether the first argument of a command is a NAME.
func takesName(cmd *cli.Command) bool {
	return strings.HasPrefix(cmd.ArgsUsage, "NAME") || strings.Contains(cmd.UsageText, " NAME ")
}

// completeName prints the names that a command may be given, with their kinds, or flags if the user
// types one.
func completeName(ctx context.Context, cmd *cli.Command) {
	if os.Getenv(completeEnv) == "" || cmd.Args().Present() {
		cli.DefaultCompleteWithFlags(ctx, cmd)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, completionPatience)
	defer cancel()
	_ = query(ctx, cmd, func(client *latchkey.Client) error {
		for o, err := range client.Objects(ctx, "*") {
			if err != nil {
				return err
			}
			if unquoted.MatchString(o.Name) && suits(cmd, o) {
				_, _ = fmt.Fprintf(cmd.Root().Writer, "%s:%s\n", strings.ReplaceAll(o.Name, ":", `\:`), kindText(o))
			}
		}
		return nil
	})
}

// suits reports whether a command is for objects of that kind.
func suits(cmd *cli.Command, o latchkey.Object) bool {
	switch cmd.Lineage()[1].Name {
	case "sem":
		return o.Kind == latchkey.KindSemaphore
	case "latch":
		return o.Kind == latchkey.KindLatch
	case "barrier":
		return o.Kind == latchkey.KindBarrier
	case "once":
		return o.Kind == latchkey.KindOnce
	case "rate":
		return o.Kind == latchkey.KindRate
	}
	switch cmd.Name {
	case "inspect", "waiters", "watch":
		return true
	}
	return o.Locked()
}
