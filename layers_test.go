package latchkey

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// floors lists the files of the package by floor, the lowest first. A file may refer only to its own floor and to
// lower ones.
var floors = []string{
	0: "doc errors owner mutexorder",
	1: "",
	2: "",
	3: "",
	4: "",
	5: "",
	6: "client connect options calloption event hold pubsub inspect waiters objects check locker mutex rlock fencedlock spinlock fairlock rwlock semaphore permitsemaphore permit fairsemaphore countdownlatch barrier election multilock redlock",
}

// No file refers to a floor above its own.
func TestLayers(t *testing.T) {
	floorOf := floorsOfFiles()
	p := checkPackage(t)
	for _, file := range p.files {
		require.Contains(t, floorOf, file, "the file is on no floor: see floors")
	}
	require.Len(t, p.files, len(floorOf), "a file that is on a floor is gone")
	for u, names := range p.uses() {
		if floorOf[u.from] < floorOf[u.to] {
			assert.Fail(t, "a reference to a floor above", "%s → %s: %v", u.from, u.to, slices.Sorted(maps.Keys(names)))
		}
	}
}

// A type does not get the methods that an interface requires from a floor above both of them.
func TestLayers_methods_of_interfaces(t *testing.T) {
	floorOf := floorsOfFiles()
	p := checkPackage(t)
	for _, i := range p.types() {
		required, is := i.Type().Underlying().(*types.Interface)
		if !is {
			continue
		}
		for _, each := range p.types() {
			pointer := types.NewPointer(each.Type())
			if types.IsInterface(each.Type()) || !types.Implements(pointer, required) {
				continue
			}
			from, methods := p.file(i.Pos()), types.NewMethodSet(pointer)
			for m := range required.Methods() {
				found := methods.Lookup(p.pkg, m.Name())
				to := p.file(found.Obj().Pos())
				assert.LessOrEqual(t, floorOf[to], max(floorOf[from], floorOf[p.file(each.Pos())]), "%s in %s requires %s of %s, which is in %s",
					i.Name(), from, m.Name(), each.Name(), to)
			}
		}
	}
}

func floorsOfFiles() map[string]int {
	floorOf := map[string]int{}
	for floor, files := range floors {
		for _, file := range strings.Fields(files) {
			floorOf[file] = floor
		}
	}
	return floorOf
}

// checkedPackage is the package, type-checked from its source.
type checkedPackage struct {
	set   *token.FileSet
	files []string
	info  *types.Info
	pkg   *types.Package
}

// checkPackage returns the package, which it checks once.
func checkPackage(t *testing.T) checkedPackage {
	t.Helper()
	checked.Do(func() { thePackage = loadPackage(t) })
	return thePackage
}

var (
	checked    sync.Once
	thePackage checkedPackage
)

func loadPackage(t *testing.T) checkedPackage {
	t.Helper()
	p := checkedPackage{set: token.NewFileSet(), info: &types.Info{Uses: map[*ast.Ident]types.Object{}}}
	var parsed []*ast.File
	for _, path := range sources(t, ".") {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		file, err := parser.ParseFile(p.set, path, text, 0)
		require.NoError(t, err)
		parsed = append(parsed, file)
		p.files = append(p.files, strings.TrimSuffix(path, ".go"))
	}
	imports := importer.ForCompiler(p.set, "gc", compiledImports(t))
	config := types.Config{Importer: imports, Error: func(err error) { assert.NoError(t, err) }}
	p.pkg, _ = config.Check("latchkey", p.set, parsed, p.info)
	return p
}

// compiledImports returns a function that opens the compiled form of an import of the package. The go command has
// compiled it for this test, with the race detector if that is on, so nothing needs to be compiled or parsed again.
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

// file returns the name of the file at a position.
func (p checkedPackage) file(at token.Pos) string {
	return strings.TrimSuffix(p.set.Position(at).Filename, ".go")
}

// types returns the types of the package that have no parameters.
func (p checkedPackage) types() (all []*types.TypeName) {
	for _, name := range p.pkg.Scope().Names() {
		found, is := p.pkg.Scope().Lookup(name).(*types.TypeName)
		if !is {
			continue
		}
		if named, is := found.Type().(*types.Named); is && named.TypeParams().Len() == 0 {
			all = append(all, found)
		}
	}
	return all
}

// use is a reference from one file to a name in another.
type use struct{ from, to string }

// uses returns the names by which the files refer to each other.
func (p checkedPackage) uses() map[use]map[string]bool {
	uses := map[use]map[string]bool{}
	for ident, object := range p.info.Uses {
		if object.Pkg() != p.pkg {
			continue
		}
		u := use{p.file(ident.Pos()), p.file(object.Pos())}
		if uses[u] == nil {
			uses[u] = map[string]bool{}
		}
		uses[u][object.Name()] = true
	}
	return uses
}

// sources returns the paths of the Go files in a folder, without the tests.
func sources(t *testing.T, folder string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	return slices.DeleteFunc(paths, func(path string) bool { return strings.HasSuffix(path, "_test.go") })
}
