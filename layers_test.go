package latchkey

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// floors lists the files of the package by floor, the lowest first. A file may refer only to its own floor and to
// lower ones.
var floors = []string{
	0: "doc errors busyerror owner kinds mutexorder parallel",
	1: "script reply replicas acquireerrors drift pause leasebounds",
	2: "keys namecache options calloption report notice event shape label rueidisoption connecturl lifecycle doubt lease timebound request dueheap",
	3: "waitqueue waitqueues waitqueue_state waiterlist waitqueue_holds waitqueue_answer waitqueue_lines waitqueue_strangers waitqueue_pollers waitqueue_permits waitqueue_turns waitqueue_share waitqueue_presence pubsub pubsub_listener pubsub_channels pubsub_sharded",
	4: "client hold holdstate release extend passing readalong handover handover_channel queueentry nextowner successor queuekeys loss maxhold heldcontext confine ownership ownership_line registry registry_live watchdog renewal undo undoownership idempotency synchronizer primitive spec protocol acquisition resolve attempt reenter wait waiting serveridentity inspection schedule verifying holdbackend holdmembers holdset close observe atleast clientrecord holdnote permitids clientrecordread knownlabels ownwait",
	5: "connect lazy locker member forceunlock rwprotocol rwrefusal do synclocker objects objectwalk objectlook waiters",
	6: "mutex lock fencedlock spinlock fairlock fairprotocol fairwaiters fairrefresh rwlock readlock writelock rwreentry rwdowngrade semaphore semacquire sempassing permitsemaphore permitcount permitstats permit permitbyid fairsemaphore fairpermit countdownlatch latchround latchawait election leadership electionobserve electionrun barrier barrierstate barrierparty barrierdo permitholders",
	7: "check composite compositehold multilock redlock redround redfailure distinctservers compositeinspect compositemembers compositerelease compositepassing compositeline redline compositeobserve multiline memberorder memberholds multiround",
}

// No file refers to a floor above its own.
func TestLayers(t *testing.T) {
	floorOf := map[string]int{}
	for floor, files := range floors {
		for _, file := range strings.Fields(files) {
			floorOf[file] = floor
		}
	}
	files, uses := references(t)
	for _, file := range files {
		require.Contains(t, floorOf, file, "the file is on no floor: see floors")
	}
	require.Len(t, files, len(floorOf), "a file that is on a floor is gone")
	for u, names := range uses {
		if floorOf[u.from] < floorOf[u.to] {
			assert.Fail(t, "a reference to a floor above", "%s → %s: %v", u.from, u.to, slices.Sorted(maps.Keys(names)))
		}
	}
}

// use is a reference from one file to a name in another.
type use struct{ from, to string }

// references type-checks the package without its imports. It returns the files, and the names by which they refer to
// each other.
func references(t *testing.T) (files []string, uses map[use]map[string]bool) {
	t.Helper()
	set := token.NewFileSet()
	var parsed []*ast.File
	for _, path := range sources(t, ".") {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		file, err := parser.ParseFile(set, path, text, 0)
		require.NoError(t, err)
		parsed = append(parsed, file)
		files = append(files, strings.TrimSuffix(path, ".go"))
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: importer.ForCompiler(set, "source", nil), Error: func(error) {}}
	pkg, _ := config.Check("latchkey", set, parsed, info)
	uses = map[use]map[string]bool{}
	name := func(at token.Pos) string { return strings.TrimSuffix(set.Position(at).Filename, ".go") }
	for ident, object := range info.Uses {
		if object.Pkg() != pkg {
			continue
		}
		u := use{name(ident.Pos()), name(object.Pos())}
		if uses[u] == nil {
			uses[u] = map[string]bool{}
		}
		uses[u][object.Name()] = true
	}
	return files, uses
}

// The map in CONTRIBUTING.md lists each file on its floor.
func TestMapOfTheFiles(t *testing.T) {
	text, err := os.ReadFile("CONTRIBUTING.md")
	require.NoError(t, err)
	var named []string
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || strings.Trim(cells[1], " 0123456789") != "" && cells[1] != " transport " {
			continue
		}
		for _, name := range strings.Split(cells[2], ",") {
			named = append(named, strings.TrimSpace(cells[1])+": "+strings.Trim(name, " `"))
		}
	}
	var files []string
	for i, names := range floors {
		for _, name := range strings.Fields(names) {
			files = append(files, strconv.Itoa(i)+": "+name+".go")
		}
	}
	for _, path := range sources(t, transportFolder) {
		files = append(files, "transport: "+filepath.Base(path))
	}
	assert.ElementsMatch(t, files, named)
}

const transportFolder = "internal/transport"

// The code that sends commands imports only rueidis and the standard library, so it depends on no floor.
func TestLayers_transport_is_below_all(t *testing.T) {
	for _, path := range sources(t, transportFolder) {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, each := range file.Imports {
			imported, err := strconv.Unquote(each.Path.Value)
			require.NoError(t, err)
			first, _, _ := strings.Cut(imported, "/")
			assert.True(t, imported == "github.com/redis/rueidis" || !strings.Contains(first, "."), "%s imports %s", path, imported)
		}
	}
}

// sources returns the paths of the Go files in a folder, without the tests.
func sources(t *testing.T, folder string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	return slices.DeleteFunc(paths, func(path string) bool { return strings.HasSuffix(path, "_test.go") })
}
