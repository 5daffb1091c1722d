package latchkey

import (
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The public API is as api.txt says. LATCHKEY_TEST_API=write writes that file, for a change that is
// wanted.
func TestAPI(t *testing.T) {
	const file, wanted = "api.txt", "\nIf that is wanted, write api.txt: LATCHKEY_TEST_API=write go test -run TestAPI ."
	api := apiOf(compiled(t))
	if os.Getenv("LATCHKEY_TEST_API") == "write" {
		require.NoError(t, os.WriteFile(file, []byte(strings.Join(api, "\n")+"\n"), 0o600))
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	want := strings.Split(strings.TrimSpace(string(text)), "\n")
	for _, line := range want {
		assert.True(t, slices.Contains(api, line), "gone: %s"+wanted, line)
	}
	for _, line := range api {
		assert.True(t, slices.Contains(want, line), "new: %s"+wanted, line)
	}
}

// compiled returns the package as its users see it.
func compiled(t *testing.T) *types.Package {
	t.Helper()
	p, err := importer.ForCompiler(token.NewFileSet(), "gc", compiledImports(t)).Import("github.com/latchkey-go/latchkey")
	require.NoError(t, err)
	return p
}

// compiledImports returns a function that opens the compiled form of an import of the package. The
// go command has compiled it for this test, with the race detector if that is on, so nothing needs
// to be compiled or parsed again.
func compiledImports(t *testing.T) func(path string) (io.ReadCloser, error) {
	t.Helper()
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}
	if build, _ := debug.ReadBuildInfo(); build != nil && slices.Contains(build.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		args = append(args, "-race")
	}
	fileOf := map[string]string{}
	output, err := exec.CommandContext(t.Context(), "go", append(args, ".")...).Output()
	require.NoError(t, err)
	for line := range strings.Lines(string(output)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		fileOf[path] = file
	}
	return func(path string) (io.ReadCloser, error) { return os.Open(fileOf[path]) }
}

// apiOf returns the exported names of a package, and the exported fields and methods of its types.
// An underlying type of another package counts as what it consists of.
func apiOf(p *types.Package) (lines []string) {
	short := func(other *types.Package) string {
		if other == p {
			return ""
		}
		return other.Name()
	}
	for _, name := range p.Scope().Names() {
		object := p.Scope().Lookup(name)
		if !object.Exported() {
			continue
		}
		named, is := object.(*types.TypeName)
		if !is {
			line := types.ObjectString(object, short)
			if c, is := object.(*types.Const); is {
				line = fmt.Sprintf("const %s %s = %s", name, types.TypeString(c.Type(), short), c.Val().ExactString())
			}
			lines = append(lines, line)
			continue
		}
		lines = append(lines, "type "+name+" "+shape(named.Type().Underlying(), short))
		set := types.NewMethodSet(named.Type())
		if !types.IsInterface(named.Type()) {
			set = types.NewMethodSet(types.NewPointer(named.Type()))
		}
		for m := range set.Methods() {
			if m.Obj().Exported() {
				signature := strings.TrimPrefix(types.TypeString(m.Type(), short), "func")
				lines = append(lines, "func ("+name+") "+m.Obj().Name()+signature)
			}
		}
	}
	return lines
}

// shape returns a type without what is not exported.
func shape(t types.Type, short types.Qualifier) string {
	s, is := t.(*types.Struct)
	switch {
	case types.IsInterface(t):
		return "interface"
	case !is:
		return types.TypeString(t, short)
	}
	var fields []string
	for field := range s.Fields() {
		if field.Exported() {
			fields = append(fields, field.Name()+" "+types.TypeString(field.Type(), short))
		}
	}
	return "struct{" + strings.Join(fields, "; ") + "}"
}
