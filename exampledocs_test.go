package latchkey

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each exported function has an example in the documentation, and each exported type has one of its
// own, of a constructor or of a method. A constructor that is a method of Client needs none: the
// type that it returns has one.
func TestEachTypeHasAnExample(t *testing.T) {
	set := token.NewFileSet()
	paths, err := filepath.Glob("example*_test.go")
	require.NoError(t, err)
	var files []*ast.File
	for _, path := range append(sources(t, "."), paths...) {
		text, err := parser.ParseFile(set, path, nil, parser.ParseComments)
		require.NoError(t, err)
		if name := text.Name.Name; name == "latchkey_test" || !strings.HasSuffix(path, "_test.go") {
			files = append(files, text)
		}
	}
	pkg, err := doc.NewFromFiles(set, files, "github.com/latchkey-go/latchkey")
	require.NoError(t, err)
	for _, f := range pkg.Funcs {
		assert.NotEmpty(t, f.Examples, "the function %s has no example", f.Name)
	}
	for _, each := range pkg.Types {
		examples := len(each.Examples)
		for _, f := range append(each.Funcs, each.Methods...) {
			examples += len(f.Examples)
		}
		assert.NotZero(t, examples, "the type %s has no example", each.Name)
	}
}
