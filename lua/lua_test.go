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
		for _, part := range []string{"KEYS[", "Reply", "Cost:"} {
			assert.Contains(t, text, part, name)
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
