// Command latchkey shows the locks, semaphores and other objects of this module, and lets shell
// scripts use them.
//
//	latchkey demo                                     workers, one lock, a death, a proof
//	latchkey run NAME [flags] -- CMD [ARGS…]          run CMD while holding a lock
//	latchkey lock NAME [flags]                        hold a lock until a signal, or until standard input ends
//	latchkey top [PREFIX]                             show all objects, live
//	latchkey ls [--prefix PREFIX | --match PATTERN] [--json]
//	                                                  list all objects once
//	latchkey waiters NAME [--json]                    list the waiters of an object
//	latchkey watch NAME [--every 500ms] [--json]      print a line for each change of an object
//	latchkey check                                    check that the server supports and permits locks
//	latchkey cron [--at-least 1m] NAME -- CMD [ARGS…] run CMD once in a fleet
//	latchkey once NAME --ttl 24h [flags] -- CMD [ARGS…]
//	                                                  run CMD until it has succeeded once in a fleet
//	latchkey once NAME --forget                       forget the success
//	latchkey inspect NAME [--exit-code] [--json]      show who holds a lock, how often, how long; or another object
//	latchkey unlock --force NAME [--kind mutex] [--json]
//	                                                  take a lock away from its holders
//	latchkey elect NAME [flags] -- CMD [ARGS…]        run CMD while leading, again after each loss
//	latchkey leader NAME [--watch] [--json]           show who leads, and since when
//	latchkey sem run NAME [--permits N] [flags] -- CMD [ARGS…]
//	                                                  run CMD, at most N at once
//	latchkey sem inspect NAME [--exit-code] [--json]  show the permits of a semaphore, and who holds them
//	latchkey sem release --force NAME ID… [--json]    take permits away from their holders
//	latchkey sem set NAME N [--json]                  set the number of permits
//	latchkey sem delete NAME [--json]
//	latchkey latch set NAME N [--ttl 1h] [--json]     close a latch for N counts
//	latchkey latch down NAME [--n 1 | --as PARTICIPANT] [--json]
//	                                                  count a latch down
//	latchkey latch wait NAME [--wait 60s]             wait until a latch is open
//	latchkey latch inspect NAME [--json]              show whether a latch is open, and the remaining count
//	latchkey latch delete NAME [--json]
//	latchkey barrier wait NAME --parties N [--wait 60s] [--json]
//	                                                  wait until N programs wait
//	latchkey barrier inspect NAME [--json]            show who waits at a barrier
//	latchkey barrier reset NAME                       end the waits at a barrier
//	latchkey rate NAME N/PERIOD [flags] -- CMD [ARGS…]
//	                                                  run CMD when its turn comes
//	latchkey help [COMMAND…]
//	latchkey completion bash|zsh|fish|pwsh            write a script that completes command lines
//	latchkey version
//
// --redis URL or LATCHKEY_REDIS names the server. Without either, demo uses an
// embedded server, and the other commands use redis://localhost:6379.
//
// # Exit codes
//
//	  0  done; run, sem run, cron, once and rate return the command's own code, whatever it is;
//	     cron: the job runs elsewhere, unless --conflict-exit-code sets another code;
//	     once: the command has succeeded, now or earlier
//	  1  a proof of the demo failed
//	 64  the command line is wrong
//	 69  the server is unreachable or refused; check: something is wrong
//	 70  any other error, such as an object of another kind, or a latch that nobody
//	     has set
//	 75  run: the lock or permit was not acquired in time, try again later;
//	     rate: the turn does not come in time;
//	     latch wait: the latch was not open in time; leader: nobody leads;
//	     inspect --exit-code: the name is free, or the semaphore is not set;
//	     barrier wait: not all had arrived in time
//	 76  run: the lock or permit was lost while the command ran; the command was ended;
//	     latch: the latch was deleted or expired before it opened;
//	     barrier wait: another party broke the barrier, or it was reset
//	126  run: the command cannot be executed
//	127  run: the command was not found
//	128+n  ended by signal n: the command, or this program while it waited
package main

import (
	"context"
	"os"

	"github.com/urfave/cli/v3"
)

func main() {
	err := app(os.Args).Run(context.Background(), os.Args)
	os.Exit(report(os.Stderr, err))
}

func app(args []string) *cli.Command {
	cli.HelpPrinter = printHelp
	root := &cli.Command{
		Name:                            "latchkey",
		Usage:                           "distributed locks and more, in Redis or Valkey",
		Description:                     rootDescription,
		Version:                         version(),
		Flags:                           []cli.Flag{redisFlag(), verboseFlag()},
		EnableShellCompletion:           true,
		ConfigureShellCompletionCommand: configureCompletion,
		ExitErrHandler:                  leaveErrorsToMain,
		Commands: []*cli.Command{
			demoCommand(),
			victimCommand(),
			runCommand(args),
			lockCommand(),
			topCommand(),
			lsCommand(),
			waitersCommand(),
			watchCommand(),
			checkCommand(),
			cronCommand(args),
			onceCommand(args),
			inspectCommand(),
			unlockCommand(),
			electCommand(args),
			leaderCommand(),
			semCommand(args),
			latchCommand(),
			barrierCommand(),
			rateCommand(args),
			versionCommand(),
			helpCommand(),
		},
	}
	_ = root.Walk(complete)
	return root
}

const rootDescription = `Shows the locks, elections, semaphores and other objects of this library, and lets
shell scripts use them. Start with:

  latchkey demo
  latchkey run backup -- ./backup.sh
  latchkey help run

Exit codes:

0  success; if a command is run: its own code, whatever it is
1  a proof of the demo failed
64  the command line is wrong
69  the server cannot be reached, or refuses; check: something is wrong
70  any other error, such as a name of another kind, or a latch that is not set
75  not acquired, not open, not all arrived in time, or nobody leads: try again;
    with --exit-code: nothing is there
76  the lock was lost, the latch was deleted or expired, or the barrier was broken
126  the command cannot be executed
127  the command was not found
128+n  ended by signal n`

// complete sets what all commands have in common. A group shows its help text when it is called
// without a command.
func complete(cmd *cli.Command) error {
	cmd.OnUsageError = onUsageError
	if len(cmd.Commands) == 0 {
		cmd.HideHelpCommand = true // an argument may be help
		if takesName(cmd) {
			cmd.ShellComplete = completeName
		}
		return nil
	}
	if cmd.Command("help") == nil {
		help := helpCommand()
		help.Hidden = true // latchkey help does the same
		cmd.Commands = append(cmd.Commands, help)
	}
	cmd.Action = func(_ context.Context, cmd *cli.Command) error {
		switch {
		case cmd.Args().Present():
			return unknownCommand(cmd, cmd.Args().First())
		case cmd == cmd.Root():
			return cli.ShowRootCommandHelp(cmd)
		}
		return cli.ShowSubcommandHelp(cmd)
	}
	return nil
}

// group returns a command that only has other commands below it.
func group(name, usage, description string, commands ...*cli.Command) *cli.Command {
	return &cli.Command{Name: name, Usage: usage, Description: description, Commands: commands}
}

func leaveErrorsToMain(context.Context, *cli.Command, error) {}
