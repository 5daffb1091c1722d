package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const module = "github.com/latchkey-go/latchkey"

// floors are the folders of this one, the lowest first.
var floors = []string{"base", "transport", "engine", "primitive", "testredis", "model"}

// onlyIn has what these rooms may import besides rooms, rueidis and the standard library.
var onlyIn = map[string][]string{
	module + "/lua":          {"engine/script", "primitive/lock", "testredis"},
	"github.com/google/uuid": {"base/identity"},
}

// ownKinds are the rooms that a room may know of the floor primitive: that of the two ways to store
// a lock for all, and for what lists and frees all kinds of objects, those with keys that others do
// not have. A client for tests gives back what nobody waits for, as that of the root does.
var ownKinds = map[string][]string{
	"":                {"primitive/lock"},
	"primitive/admin": {"primitive/lock", "primitive/rw"},
	"testredis":       {"primitive/admin"},
}

// A room imports rooms of its own floor and of lower ones only, rueidis, the standard library, and
// what onlyIn names. The packages are one folder or two below this one.
func TestRooms_floors(t *testing.T) {
	for room, files := range rooms(t) {
		own := floorOf(t, room)
		for _, file := range files {
			for _, each := range file.Imports {
				path, err := strconv.Unquote(each.Path.Value)
				require.NoError(t, err)
				host, _, _ := strings.Cut(path, "/")
				switch other, is := strings.CutPrefix(path, module+"/internal/"); {
				case path == module:
					assert.Fail(t, "imports the root", room)
				case is:
					assert.LessOrEqual(t, floorOf(t, other), own, "%s imports %s, which is above it", room, other)
					if floorOf(t, other) == slices.Index(floors, "primitive") {
						assert.Contains(t, slices.Concat(ownKinds[""], ownKinds[room]), other, "%s imports another primitive, which ownKinds does not list", room)
					}
				case onlyIn[path] != nil:
					assert.Contains(t, onlyIn[path], room, "%s imports %s, for which onlyIn does not list it", room, path)
				case strings.Contains(host, "."):
					assert.Equal(t, "github.com/redis/rueidis", path, "%s imports what no room may: see onlyIn", room)
				}
			}
		}
	}
}

// A file has at most 300 lines, and a room 2,000. Tests do not count.
func TestRooms_are_small(t *testing.T) {
	for room, files := range rooms(t) {
		all := 0
		for _, file := range files {
			lines := set.File(file.FileStart).LineCount()
			assert.LessOrEqual(t, lines, 300, "%s: split the file by what its parts do", set.File(file.FileStart).Name())
			all += lines
		}
		assert.LessOrEqual(t, all, 2000, "%s: move a duty to a room of its own", room)
	}
}

// set has the positions in all files.
var set = token.NewFileSet()

// The map in doc.go names every room.
func TestRooms_map(t *testing.T) {
	doc, err := parser.ParseFile(token.NewFileSet(), "doc.go", nil, parser.ParseComments)
	require.NoError(t, err)
	var named, found []string
	for line := range strings.Lines(doc.Doc.Text()) {
		columns := strings.Split(line, "|")
		if len(columns) == 3 && strings.TrimSpace(columns[0]) != "floor" {
			named = append(named, filepath.ToSlash(filepath.Join(strings.TrimSpace(columns[0]), strings.TrimSpace(columns[1]))))
		}
	}
	for room := range rooms(t) {
		found = append(found, room)
	}
	assert.ElementsMatch(t, found, named, "the folders (list A) and the table in doc.go (list B) must have the same rooms")
}

func floorOf(t *testing.T, room string) int {
	t.Helper()
	floor, _, _ := strings.Cut(room, "/")
	require.Contains(t, floors, floor, "%s is on a floor that floors does not list", room)
	return slices.Index(floors, floor)
}

// rooms returns the packages below this folder, each with its files that are no tests.
func rooms(t *testing.T) map[string][]*ast.File {
	t.Helper()
	all := map[string][]*ast.File{}
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		folder := filepath.ToSlash(filepath.Dir(path))
		if err != nil || folder == "." || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		all[folder] = append(all[folder], file)
		return err
	})
	require.NoError(t, err)
	return all
}
