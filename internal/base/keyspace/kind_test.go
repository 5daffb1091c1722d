package keyspace

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Programs can name every kind that an event or an inspection tells them.
func TestKinds_are_public(t *testing.T) {
	assert.ElementsMatch(t, kindsIn(t, "kind.go"), kindsIn(t, "../../../objects.go"),
		"kind.go (list A) and objects.go (list B) must have the same constants")
}

// kindsIn returns the names of the constants in a file that begin with Kind.
func kindsIn(t *testing.T, path string) (names []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	require.NoError(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, is := n.(*ast.ValueSpec); is && strings.HasPrefix(spec.Names[0].Name, "Kind") {
			names = append(names, spec.Names[0].Name)
		}
		return true
	})
	require.NotEmpty(t, names)
	return names
}
