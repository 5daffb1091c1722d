package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rivo/uniseg"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey/latchkeytest"
)

// commandPaths returns the words of all commands that users see.
func commandPaths() [][]string {
	var below func(cmd *cli.Command, words []string) [][]string
	below = func(cmd *cli.Command, words []string) [][]string {
		paths := [][]string{words}
		for _, sub := range cmd.Commands {
			if !sub.Hidden {
				paths = append(paths, below(sub, append(words[:len(words):len(words)], sub.Name))...)
			}
		}
		return paths
	}
	paths := below(app(nil), nil)
	for _, shell := range []string{"", "bash", "zsh", "fish", "pwsh"} {
		paths = append(paths, strings.Fields("completion "+shell)) // the library adds these
	}
	return paths
}

// Each command has a help text of 80 columns with an example, whichever way the user asks for help.
func TestHelpOfEachCommand(t *testing.T) {
	t.Parallel()
	paths := commandPaths()
	require.Greater(t, len(paths), 30)
	for _, words := range paths {
		t.Run(strings.Join(words, " "), func(t *testing.T) {
			t.Parallel()
			byFlag := latchkeyCLI(t, nil, append(words[:len(words):len(words)], "--help")...)
			assert.Zero(t, byFlag.code, byFlag.stderr)
			assert.Equal(t, byFlag, latchkeyCLI(t, nil, append([]string{"help"}, words...)...))
			for line := range strings.Lines(byFlag.stdout) {
				line = strings.TrimSuffix(line, "\n")
				assert.LessOrEqual(t, uniseg.StringWidth(line), helpWidth, line)
				assert.Equal(t, strings.TrimRight(line, " "), line)
			}
			example := `(?m)^     (?:.* )?latchkey (?:--\S+ \S+ )?` + regexp.QuoteMeta(strings.Join(words, " "))
			assert.Regexp(t, example, byFlag.stdout, "an example")
			assert.NotContains(t, byFlag.stdout, "demo-victim")
		})
	}
}

func TestHelpOfWhatDoesNotExist(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"help", "inspct"}, {"help", "sem", "st"}, {"help", "run", "it"}, {"sem", "help", "st"}, {"--help", "inspct"},
	} {
		got := latchkeyCLI(t, nil, args...)
		assert.Equal(t, exitUsage, got.code, args)
		assert.Empty(t, got.stdout, args)
		assertOneLine(t, got.stderr)
	}
}

func TestSuggestions(t *testing.T) {
	t.Parallel()
	for meant, args := range map[string][]string{
		`unknown command "inspct"; did you mean inspect? See latchkey --help`:          {"inspct", "orders"},
		`unknown command "rnu"; did you mean run? See latchkey --help`:                 {"rnu", "--lock", "a", "--", "true"},
		`unknown command "wiat"; did you mean wait? See latchkey latch --help`:         {"latch", "wiat", "a", "--wait"},
		`unknown command "st"; did you mean set? See latchkey sem --help`:              {"sem", "st", "orders", "2"},
		`unknown flag --lok; did you mean --lock? See latchkey run --help`:             {"run", "--lok", "orders", "--", "true"},
		`unknown flag --party; did you mean --parties? See latchkey barrier wait --he`: {"barrier", "wait", "b", "--party", "2"},
	} {
		got := latchkeyCLI(t, nil, args...)
		assert.Equal(t, exitUsage, got.code)
		assert.Contains(t, got.stderr, meant)
	}
}

func TestSuggestionsAreClose(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"completion", "nope"}, {"help", "nonsense"}, {"nonsense"}, {"sem", "orders"}, {"run", "--color", "--", "true"}, {"run", "-x"},
	} {
		got := latchkeyCLI(t, nil, args...)
		assert.Equal(t, exitUsage, got.code)
		assert.Contains(t, got.stderr, "unknown ")
		assert.NotContains(t, got.stderr, "did you mean", args)
	}
}

func TestHelpSaysThatEmptyInputEndsNoLock(t *testing.T) {
	t.Parallel()
	got := latchkeyCLI(t, nil, "lock", "--help")
	assert.Contains(t, got.stdout, "with /dev/null")
}

// Messages name commands and flags, not the methods of the library.
func TestMessagesAreThoseOfTheCommandLine(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	_, err := server.Client().NewCountDownLatch("ready").TrySetCount(t.Context(), 2)
	require.NoError(t, err)
	for want, args := range map[string][]string{
		"--lease 1ms: must be 10ms to 10 years (87600h); see latchkey run --help":   {"run", "--lock", "a", "--lease", "1ms", "--", "true"},
		"--wait soon: must be a time such as 500ms, 10s or 5m; see latchke":         {"run", "--lock", "a", "--wait", "soon", "--", "true"},
		"--wait -1s: must be at least 1ms; see latchkey barrier wait --he":          {"barrier", "wait", "b", "--parties", "2", "--wait=-1s"},
		"--parties is missing; see latchkey barrier wait --help":                    {"barrier", "wait", "b"},
		"--parties two: must be a number; see latchkey barrier wait --help":         {"barrier", "wait", "b", "--parties", "two"},
		"--at-least 0s: must be 1ms to 10 years (87600h); see latchkey cron --help": {"cron", "--at-least", "0s", "a", "--", "true"},
		`"ready": the key is a latch, not a lock`:                                   {"run", "--lock", "ready", "--", "true"},
		`"ready": the key is a latch, not a read/write lock`:                        {"lock", "ready", "--read", "-n"},
		`"nope": not set`: {"latch", "down", "nope"},
		`"orders": -1 permits, want at least 0 and at most 2147483647`:   {"sem", "set", "orders", "-1"},
		`"{}": the name "{}" has stray, nested or empty braces`:          {"inspect", "{}"},
		`"localhost" is not the URL of a server; want redis://host:port`: {"--redis", "localhost", "inspect", "a"},
	} {
		got := latchkeyCLI(t, server, args...)
		assert.NotZero(t, got.code, args)
		assert.Contains(t, got.stderr, "latchkey: "+want, args)
		assertOneLine(t, got.stderr)
	}
}

func TestPlainErrorsOfTheServer(t *testing.T) {
	const oom, digest = `OOM command not allowed when used memory > 'maxmemory'.`, "e98c7e9b1f2a3b4c5d6e7f8091a2b3c4d5e6f708"
	for _, reply := range []string{
		oom, oom + " script: " + digest + ", on @user_script:12.", oom + " script: on @user_script:12.", // Valkey 9
		"Error running script (call to f_" + digest + "): @user_script:12: @user_script: 12: -" + oom, // Redis 6.2
	} {
		assert.Equal(t, `"a": `+oom, plainError{stringError(`latchkey: try lock "a": ` + reply)}.Error())
	}
}

type stringError string

func (e stringError) Error() string { return string(e) }

// Help fits the terminal, down to 40 columns.
func TestHelpFitsTheTerminal(t *testing.T) {
	t.Parallel()
	for _, width := range []int{60, 80, 200} {
		p := onScreen(t, width, "", `"$LATCHKEY" sem set --help`)
		lines := p.await("GLOBAL OPTIONS", "code 0")
		for _, line := range lines {
			assert.LessOrEqual(t, uniseg.StringWidth(line), min(width, helpWidth), line)
		}
		assert.Contains(t, strings.Join(lines, "\n"), map[bool]string{
			true:  "   --redis URL  URL of the server (default:\n                redis://localhost:6379) [$LATCHKEY_REDIS]\n",
			false: "   --redis URL  URL of the server (default: redis://localhost:6379)\n                [$LATCHKEY_REDIS]\n",
		}[width < 80], "no line was broken by the terminal")
	}
}

func TestWrappedText(t *testing.T) {
	assert.Equal(t, "one two\nthree\n\n  an example that stays\n\nA    one\n     two\nBCD  a b\n     c",
		wrapped("one two three\n\n  an example that stays\n\nA  one two\nBCD  a b\n     c", 8))
}

// Lines that are too wide continue below the start of their text.
func TestLinesOfATerminal(t *testing.T) {
	const text = "x is locked\n  held by  web-1 (owner), \"order 42\"\n12:30:00.000  held by web-1\n"
	assert.Equal(t, text, linesIn(text, 0))
	assert.Equal(t, "x is locked\n  held by  web-1\n           (owner),\n           \"order 42\"\n"+
		"12:30:00.000  held by\n              web-1\n", linesIn(text, 21))
}

// The scripts work in the shells themselves.
func TestCompletion(t *testing.T) {
	t.Parallel()
	for shell, setUp := range map[string]string{
		"bash": `exec bash --norc --noprofile -i`,
		"zsh":  `exec zsh -f -i`,
		"fish": `exec fish --no-config -i`,
	} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			if !inPath(shell) {
				t.Skipf("%s is not in PATH", shell)
			}
			mark := filepath.Join(t.TempDir(), "mark")
			server := latchkeytest.NewServer(t)
			hold(t, server.Client().NewLock("orders:4711"))
			hold(t, server.Client().NewLock("orders:5$(touch "+mark+")"))
			require.NoError(t, server.Client().NewPermitSemaphore("orders:pool").SetPermits(t.Context(), 2))
			p := onScreen(t, 100, server.URL(), `export PATH="$(dirname "$LATCHKEY"):$PATH"; `+setUp)
			for _, line := range map[string][]string{
				"bash": {"PS1='> '", "source <(latchkey completion bash)", "echo set up"},
				"zsh":  {"PS1='> '; autoload -U compinit; compinit -D -u", "source <(latchkey completion zsh)", "echo set up"},
				"fish": {"latchkey completion fish | source", "echo set up"},
			}[shell] {
				p.typeIn(line)
				p.keys("Enter")
			}
			eventually(t, "the shell is set up", func() bool { return strings.Contains(strings.Join(p.lines(), "\n"), "\nset up") })
			lines := map[string]string{
				"latchkey insp":                         "latchkey inspect X",
				"latchkey --redis redis://h/2 sem dele": "latchkey --redis redis://h/2 sem delete X",
				"latchkey help barrier re":              "latchkey help barrier reset X",
				"latchkey run --loc":                    "latchkey run --lock X",
				"latchkey inspect orders:47":            "latchkey inspect orders:4711 X",
				"latchkey inspect orders:5":             "latchkey inspect orders:5X", // it would have to be quoted
				"latchkey run --wait 1m or":             "latchkey run --wait 1m orders:4711 X",
				"latchkey sem inspect or":               "latchkey sem inspect orders:pool X",
			}
			if shell != "fish" { // fish completes nothing here
				lines["latchkey ls $(touch "+mark+") --js"] = "--json X"
			}
			for typed, completed := range lines {
				p.typeIn(typed)
				p.keys("Tab")
				p.typeIn("X")
				p.await(completed)
				p.keys("C-u")
				eventually(t, "the line is gone", func() bool { return !strings.Contains(strings.Join(p.lines(), "\n"), completed) })
			}
			assert.NoFileExists(t, mark, "completion runs nothing of the line")
		})
	}
}

// Each command completes the names of its kind of object. A server that is out of reach has none.
func TestCompletionOfNames(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	client := server.Client()
	hold(t, client.NewLock("a:1"))
	hold(t, client.NewMutex("b"))
	require.NoError(t, client.NewPermitSemaphore("pool").SetPermits(t.Context(), 2))
	_, err := client.NewCountDownLatch("ready").TrySetCount(t.Context(), 1)
	require.NoError(t, err)
	names := func(url string, words ...string) []string {
		complete := exec.Command(binary, append(words, "--generate-shell-completion")...)
		complete.Env = append(os.Environ(), urlEnv+"="+url, completeEnv+"=names", "GORACE=atexit_sleep_ms=0")
		output, err := complete.Output()
		require.NoError(t, err)
		lines := strings.Fields(string(output))
		slices.Sort(lines)
		return lines
	}
	const a, b, pool, ready = `a\:1:lock`, "b:mutex", "pool:semaphore", "ready:latch"
	for words, want := range map[string][]string{
		"inspect": {a, b, pool, ready}, "watch": {a, b, pool, ready}, "run": {a, b}, "run --wait 1s": {a, b}, "lock": {a, b}, "cron": {a, b},
		"unlock --force": {a, b}, "elect": {a, b}, "leader": {a, b}, "sem run": {pool}, "sem set": {pool}, "latch wait": {ready}, "latch set": {ready},
		"barrier wait": {}, "inspect x": {}, "ls": {}, "check": {},
	} {
		assert.ElementsMatch(t, want, names(server.URL(), strings.Fields(words)...), words)
	}
	assert.Empty(t, names("redis://127.0.0.1:1", "inspect"))
}

// The advice goes by the code of a reply, not by a name in it.
func TestAdviceGoesByTheCode(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	lock := server.Client().NewLock("READONLY")
	server.Refuse("NOPERM No permissions to access a key 'OOM READONLY MISCONF'")
	_, err := lock.TryLock(t.Context())
	require.Error(t, err)
	got := advice(plainError{err})
	assert.Contains(t, got, "give the user the permissions")
	assert.Equal(t, 1, strings.Count(got, "\n"), got)
	server.Refuse("")
}
