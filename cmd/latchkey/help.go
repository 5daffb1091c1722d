package main

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/rivo/uniseg"
	"github.com/urfave/cli/v3"
)

// helpWidth is the widest line of a help text. On a terminal with fewer columns the lines are
// narrower.
const (
	helpWidth = 80
	leastHelp = 40
)

// ownOptions makes the cli library leave the options to printHelp, because the library does not
// wrap them.
var ownOptions = strings.NewReplacer(
	`{{template "visibleFlagCategoryTemplate" .}}`, "{{options .VisibleFlags}}",
	`{{template "visibleFlagTemplate" .}}`, "{{options .VisibleFlags}}",
	`{{template "visiblePersistentFlagTemplate" .}}`, "{{options .VisiblePersistentFlags}}",
)

// printHelp makes the cli library write a help text in lines that fit the terminal.
func printHelp(out io.Writer, template string, data any) {
	width := textWidth(out, helpWidth)
	cli.HelpPrinterCustom(out, ownOptions.Replace(template), data, map[string]any{
		"wrap": func(text string, indent int) string {
			return indented(wrapped(text, width-indent), indent)
		},
		"options": func(flags []cli.Flag) string { return optionsText(flags, width) },
	})
}

// textWidth returns how wide a text may be: as wide as the terminal, but not wider than most.
func textWidth(out io.Writer, most int) int {
	if width := terminalWidth(out); width > 0 {
		return max(leastHelp, min(width, most))
	}
	return most
}

// indented moves all lines but the first to the right.
func indented(text string, by int) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if i > 0 && line != "" {
			lines[i] = strings.Repeat(" ", by) + line
		}
	}
	return strings.Join(lines, "\n")
}

// optionsText returns the flags in two columns.
func optionsText(flags []cli.Flag, width int) string {
	const indent, gap = "\n   ", 2
	column := 0
	for _, flag := range flags {
		names, _, _ := strings.Cut(flag.String(), "\t")
		column = max(column, uniseg.StringWidth(names)+gap)
	}
	var text strings.Builder
	for _, flag := range flags {
		names, usage, _ := strings.Cut(flag.String(), "\t")
		lines := strings.Split(wrapped(usage, width-column-len(indent)+1), "\n")
		for i, line := range lines {
			if i > 0 {
				names = ""
			}
			text.WriteString(indent + strings.TrimRight(fit(names, column)+line, " "))
		}
	}
	return text.String()
}

// listItem matches the beginning of an item in a list: a term, before its description in a column.
var listItem = regexp.MustCompile(`^\S+(?: \S+)*  +`)

// wrapped rewraps a text. An indented paragraph is an example and stays as it is. A line that
// begins with a term and several blanks begins an item of a list.
func wrapped(text string, width int) string {
	paragraphs := strings.Split(strings.TrimSpace(text), "\n\n")
	for i, p := range paragraphs {
		if !strings.HasPrefix(p, " ") {
			paragraphs[i] = wrappedParagraph(p, width)
		}
	}
	return strings.Join(paragraphs, "\n\n")
}

func wrappedParagraph(text string, width int) string {
	column := 0
	for _, line := range strings.Split(text, "\n") {
		column = max(column, uniseg.StringWidth(listItem.FindString(line)))
	}
	var lines, words []string
	term := strings.Repeat(" ", column)
	for _, line := range strings.Split(text, "\n") {
		if next := listItem.FindString(line); next != "" {
			lines = append(lines, filled(term, words, width)...)
			term, words, line = fit(next, column), nil, line[len(next):]
		}
		words = append(words, strings.Fields(line)...)
	}
	return strings.Join(append(lines, filled(term, words, width)...), "\n")
}

// filled puts as many words as possible into each line. The first line begins with the term, and
// the others are indented by its width.
func filled(term string, words []string, width int) (lines []string) {
	if len(words) == 0 {
		return nil
	}
	line, indent := term, strings.Repeat(" ", uniseg.StringWidth(term))
	begins := true
	for _, word := range words {
		if !begins && uniseg.StringWidth(line)+1+uniseg.StringWidth(word) > width {
			lines = append(lines, line)
			line, begins = indent, true
		}
		if !begins {
			line += " "
		}
		line, begins = line+word, false
	}
	return append(lines, line)
}

// helpCommand explains the commands of a group. The one of the cli library does not know commands
// below a group.
func helpCommand() *cli.Command {
	return &cli.Command{
		Name:      "help",
		Usage:     "explain a command",
		ArgsUsage: "[COMMAND…]",
		Description: `Prints the same text as the command with --help.

  latchkey help sem run`,
		Action: func(ctx context.Context, cmd *cli.Command) error {
			group, rest := descend(cmd.Lineage()[1], cmd.Args().Slice())
			switch {
			case len(rest) > 0:
				return unknownCommand(group, rest[0])
			case len(group.Lineage()) == 1:
				return cli.ShowRootCommandHelp(group)
			}
			return cli.ShowCommandHelp(ctx, group.Lineage()[1], group.Name)
		},
		ShellComplete: func(_ context.Context, cmd *cli.Command) {
			group, _ := descend(cmd.Lineage()[1], cmd.Args().Slice())
			for _, next := range group.VisibleCommands() {
				_, _ = fmt.Fprintf(cmd.Root().Writer, "%s:%s\n", next.Name, next.Usage)
			}
		},
	}
}

// descend returns the command that the words name, and the words after it, which name no command.
func descend(cmd *cli.Command, words []string) (*cli.Command, []string) {
	for i, word := range words {
		next := cmd.Command(word)
		if next == nil {
			return cmd, words[i:]
		}
		cmd = next
	}
	return cmd, nil
}
