package lua

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// eachFile calls f with each file, by its name without ".lua".
func eachFile(t *testing.T, f func(name, text string)) {
	t.Helper()
	paths, err := fs.Glob(files, "*/*.lua")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		text, err := files.ReadFile(path)
		require.NoError(t, err)
		f(strings.TrimSuffix(path, ".lua"), string(text))
	}
}

func TestScriptsHaveHeaders(t *testing.T) {
	eachFile(t, func(name, text string) {
		if strings.HasPrefix(text, "-- Fragment") {
			return
		}
		for _, part := range []string{"\n--@keys ", "\n-- Reply", "\n-- Cost:"} {
			assert.Contains(t, text, part, name)
		}
	})
}

func TestInputs(t *testing.T) {
	for header, want := range map[string]Inputs{
		"":                {},
		"--@args a b\n":   {Least: 2, locals: "local a, b = ARGV[1], ARGV[2]\n"},
		"--@keys a b\n":   {},
		"x --@args a b\n": {},
		"--@args a b='latchkey:{'\n--@args c='' d=nil\n": {Least: 1, Usual: []string{"latchkey:{", "", "nil"},
			locals: "local a, b, c, d = ARGV[1], ARGV[2] or 'latchkey:{', ARGV[3] or '', ARGV[4] or nil\n"},
		"--@args a='1' first...\n": {Usual: []string{"1"}, Group: 1, locals: "local a, first = ARGV[1] or '1', 2\n"},
		"--@args (a b c)...\n":     {Group: 3, locals: "local a, b, c\n"},
		"--@args (a)...\n":         {Group: 1, locals: "local a\n"},
	} {
		assert.Equal(t, want, inputs(header, "--@args ", "ARGV"), header)
	}
}

// What a block includes is not seen after it. A fragment is included once in a block, and in those
// within it.
func TestText(t *testing.T) {
	text := Text("rw/write_release")
	assert.True(t, strings.HasPrefix(text, "local key, leases, writers, notes, queue = KEYS[1], "), text)
	assert.Equal(t, 1, strings.Count(text, "local function tell("))
	assert.Equal(t, 2, strings.Count(text, "local function handOver("), "in two blocks")
	assert.NotContains(t, text, "--@")
	assert.Panics(t, func() { Text("fair/nothing") })
}

// Only a script that takes any number of keys or arguments reads them by their positions.
func TestKeysAndArgumentsHaveNames(t *testing.T) {
	eachFile(t, func(name, text string) {
		for line := range strings.Lines(text) {
			code, _, _ := strings.Cut(line, "--")
			assert.False(t, strings.Contains(code, "KEYS") && Keys(name).Group == 0, "%s: %s", name, line)
			assert.False(t, strings.Contains(code, "ARGV") && Args(name).Group == 0, "%s: %s", name, line)
			assert.NotRegexp(t, `^--.*(KEYS|ARGV)\[`, line, name)
		}
	})
}

// A comment that names a file names one that exists.
func TestCommentsNameFiles(t *testing.T) {
	named := regexp.MustCompile(`[\w/]*\w+\.(lua|go)\b`)
	eachFile(t, func(name, text string) {
		for _, file := range named.FindAllString(text, -1) {
			if strings.HasSuffix(file, ".go") {
				file = "../" + file
			}
			_, err := os.Stat(file)
			assert.NoError(t, err, name)
		}
	})
}
