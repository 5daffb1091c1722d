package main

import (
	"fmt"
	"os/exec"
	"slices"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
)

// The flags and arguments of commands that run a command, and their part of the help text.

const defaultGrace = 5 * time.Second

// jobFlags returns the flags of commands that wait and then run a command.
func jobFlags(thing string) []cli.Flag { return append(acquisitionFlags(thing), graceFlag()) }

// guardFlags returns the flags of commands that run a command without waiting.
func guardFlags(thing string) []cli.Flag {
	return append(nameFlags(thing), holdingFlag(thing), graceFlag())
}

// acquisitionFlags returns the flags of commands that wait.
func acquisitionFlags(thing string) []cli.Flag {
	return append([]cli.Flag{
		waitFlag("give up after `TIME` with exit code 75", 0),
		&cli.BoolFlag{Name: "no-wait", Aliases: []string{"n"}, Usage: "try once, like --wait 0s"},
		holdingFlag(thing),
	}, nameFlags(thing)...)
}

func holdingFlag(thing string) cli.Flag {
	return leaseFlag("`TIME` after which the "+thing+" is free if this program is killed", usualLease)
}

// nameFlags returns the flags that show people who holds the thing, and what for.
func nameFlags(thing string) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "label", Usage: "`NAME` shown to others, - for none", DefaultText: "host:pid"},
		&cli.StringFlag{Name: "note", Usage: "`TEXT` shown to others with the " + thing},
	}
}

func graceFlag() cli.Flag {
	return &cli.DurationFlag{Name: "grace", Usage: "`TIME` between SIGTERM and SIGKILL after a loss", Value: defaultGrace,
		Validator: atLeast(time.Duration(0))}
}

// lockNotes returns the options of a lock for --note.
func lockNotes(cmd *cli.Command) []latchkey.TryLockOption {
	if note := cmd.String("note"); note != "" {
		return []latchkey.TryLockOption{latchkey.Note(note)}
	}
	return nil
}

// permitNotes is lockNotes for a permit.
func permitNotes(cmd *cli.Command) []latchkey.TryPermitOption {
	if note := cmd.String("note"); note != "" {
		return []latchkey.TryPermitOption{latchkey.Note(note)}
	}
	return nil
}

// jobHelp returns the part of the help text that all jobs share. refused describes the exit code
// after a failed acquisition. onlyIf, which may be "", says when a loss ends the program.
func jobHelp(thing, refused, onlyIf string) string {
	return fmt.Sprintf(`The command inherits standard input, output and error. SIGINT, SIGTERM, SIGHUP and
SIGQUIT are passed to the command and its children, SIGUSR1 and SIGUSR2 only to the
command. A signal that arrives before the %[1]s is acquired ends the wait.

When the %[1]s is lost (taken away, or the server did not answer for a whole lease),
the command and its children get SIGTERM and, after --grace, SIGKILL. Children that
created their own process group do not get these signals.

If this program is killed (SIGKILL), nothing renews the %[1]s. On Linux the command
then gets SIGTERM, but its children do not, and on other systems neither does. They go
on while another process may have the %[1]s. A service manager or a container ends
them all.

If there is a terminal, the command gets it. Ctrl-Z (SIGTSTP) then stops the command
and this program; fg and bg continue both. While both are stopped, nothing renews
the %[1]s: after --lease it is lost, and the command is ended as soon as it
continues.

Exit code: the command's own, or 128+n when signal n ended it; %[2]s;
76 when the %[1]s was lost before the command ended%[3]s; 127 when the command was
not found, 126 when it cannot be executed; 69 when the server cannot be reached or does
not answer; 64 for a mistake on the command line.`, thing, refused, onlyIf)
}

// nameAndCommand reads NAME -- CMD, which flags may precede. args is the whole command line. A flag
// with a name of its own, which may be "", can stand for NAME.
func nameAndCommand(cmd *cli.Command, args []string, flag string) (name string, argv []string, err error) {
	before, argv := aroundDashes(cmd, args)
	synopsis, needed := cmd.FullName(), ""
	if name := cmd.String(flag); name != "" {
		before = slices.Insert(before, 0, name)
	}
	if ttl := cmd.String("ttl"); ttl != "" {
		needed = " --ttl " + ttl
	}
	switch {
	case len(before) == 0:
		return "", nil, usageError("%s needs a NAME; see %s --help", cmd.Name, synopsis)
	case len(before) > 1 && !slices.Contains(args, "--"):
		return "", nil, usageError("put -- in front of the command: %s %s%s -- %s …", synopsis, before[0], needed, before[1])
	case len(before) > 1:
		return "", nil, usageError("%s takes only one NAME; %q is extra", cmd.Name, before[1])
	case len(argv) == 0:
		return "", nil, usageError("%s needs a command: %s %s%s -- CMD [ARGS…]", cmd.Name, synopsis, before[0], needed)
	}
	return before[0], argv, executable(argv[0])
}

// aroundDashes returns the arguments of a command in front of -- and behind it. args is the whole
// command line.
func aroundDashes(cmd *cli.Command, args []string) (before, argv []string) {
	all, dashes := cmd.Args().Slice(), slices.Index(args, "--")
	if dashes >= 0 {
		argv = args[dashes+1:]
	}
	return slices.DeleteFunc(all[:max(len(all)-len(argv), 0)], func(word string) bool { return word == "--" }), argv
}

// newJob reads the flags of commands that wait. argv is the command to run, if there is one.
func newJob(cmd *cli.Command, argv []string) (job, error) {
	j := job{
		cmd:   cmd,
		wait:  cmd.Duration("wait"),
		waits: cmd.IsSet("wait"),
		once:  cmd.Bool("no-wait"),
		lease: cmd.Duration("lease"),
		grace: cmd.Duration("grace"),
		argv:  argv,
	}
	if j.once && j.wait > 0 {
		return j, usageError("--no-wait and --wait %s cannot be used together", timeText(j.wait))
	}
	return j, nil
}

// executable finds a mistyped command before the wait begins.
func executable(name string) error {
	_, err := exec.LookPath(name)
	return startError(err)
}
