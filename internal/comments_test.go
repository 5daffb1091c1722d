package internal_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	commentLine = regexp.MustCompile(`(?://|--)[^\n]*`)
	fileNamed   = regexp.MustCompile(`\b[a-z_][a-z_/]*\.(?:go|lua)\b`)
)

// A file that a comment of the library names exists: at that path, or at one that ends with it.
func TestComments_name_files_that_exist(t *testing.T) {
	var all []string
	require.NoError(t, filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		all = append(all, filepath.ToSlash(path))
		return err
	}))
	exists := func(name string) bool {
		return slices.ContainsFunc(all, func(path string) bool { return strings.HasSuffix(path, "/"+name) })
	}
	for _, path := range all {
		folder, _, _ := strings.Cut(strings.TrimPrefix(path, "../"), "/")
		inside := folder == "internal" || folder == "lua" || folder == filepath.Base(path)
		if !inside || filepath.Ext(path) != ".go" && filepath.Ext(path) != ".lua" {
			continue
		}
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, comment := range commentLine.FindAllString(string(text), -1) {
			for _, name := range fileNamed.FindAllString(comment, -1) {
				assert.True(t, exists(name), "%s names %s", path, name)
			}
		}
	}
}
