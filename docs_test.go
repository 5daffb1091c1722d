package latchkey

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDocumentation checks the documentation as go doc shows it: methods of an embedded type appear
// under each type that embeds it.
func TestDocumentation(t *testing.T) {
	rooms, err := filepath.Glob("internal/*/*/*.go")
	require.NoError(t, err)
	require.NotEmpty(t, rooms)
	for i, file := range rooms {
		rooms[i] = filepath.Dir(file)
	}
	slices.Sort(rooms)
	for _, folder := range append(slices.Compact(rooms), ".", "internal/transport") {
		pkg := documentation(t, folder)
		for _, f := range pkg.Funcs {
			checkDocumented(t, f.Name, f.Doc)
		}
		for _, each := range pkg.Types {
			checkDocumented(t, each.Name, each.Doc)
			for _, f := range append(each.Funcs, each.Methods...) {
				checkDocumented(t, each.Name+"."+f.Name, f.Doc)
			}
		}
	}
}

// TestContractsAreInFull checks that the methods to which others refer name every option and every
// error.
func TestContractsAreInFull(t *testing.T) {
	methods := map[string]string{}
	for _, each := range documentation(t, ".").Types {
		for _, f := range each.Methods {
			methods[each.Name+"."+f.Name] = f.Doc
			if strings.HasSuffix(types.ExprString(f.Decl.Type), " *Lock") && f.Name != "NewLock" {
				contains(t, methods, each.Name+"."+f.Name, "[Client.NewLock]")
			}
		}
	}
	common := []string{"ErrNotAcquired", "ErrUnavailable", "ErrUnknownOutcome", "ErrInvalid", "*rueidis.RedisError"}
	contains(t, methods, "Lock.Lock", append(common, "[Wait]", "[Lease]", "[MaxHold]", "[AtLeast]", "[As]", "[Note]",
		"ErrNotReplicated", "ErrLost", "ErrClosed", "ErrWrongKind", "nil error", "ctx ended", "background")...)
	contains(t, methods, "Lock.TryLock", "ErrNotAcquired", "ErrUnavailable", "options of Lock except [Wait]", "as for Lock")
	contains(t, methods, "Lock.Do", "error of Lock", "error of fn", "ErrLost", "panics", "HoldFrom finds the hold")
	contains(t, methods, "Lock.ForceUnlock", "reports", "renewal", "ErrUnknownOutcome")
	contains(t, methods, "Semaphore.AcquireN", append(common, "[Wait]", "[AwaitSet]", "ErrNotSet", "ErrNotReplicated", "ErrClosed",
		"ErrWrongKind", "nil error", "background")...)
	contains(t, methods, "MultiLock.Lock", append(common, "as for [Lock.Lock]", "background", "a majority")...)
	contains(t, methods, "Election.Campaign", "ErrNotAcquired", "ErrInvalid", "nil error", "as for [Lock.Lock]")
	contains(t, methods, "Election.Observe", "ErrUnavailable", "ErrClosed", "ErrWrongKind", "ErrInvalid", "PollCeiling", "Terms never go back")
	contains(t, methods, "Leadership.Proclaim", "ErrNotHeld", "ErrLost", "ErrUnknownOutcome", "ErrInvalid")
	for _, side := range []string{"Reader", "Writer"} {
		contains(t, methods, "RWLock."+side, "What differs from [Client.NewLock]", "ForceUnlock")
	}
	contains(t, methods, "Client.NewFairSemaphore", "What differs from [Client.NewPermitSemaphore]")
}

func contains(t *testing.T, docs map[string]string, method string, words ...string) {
	t.Helper()
	text, found := docs[method]
	require.True(t, found, "there is no %s", method)
	text = strings.Join(strings.Fields(text), " ")
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("the documentation of %s does not say %q", method, word)
		}
	}
}

// checkDocumented requires at least one sentence, which says what the name is.
func checkDocumented(t *testing.T, name, text string) {
	t.Helper()
	sentence := new(doc.Package).Synopsis(text)
	switch {
	case len(strings.Fields(sentence)) < 3 || !strings.HasSuffix(strings.TrimSpace(text), ".") && !strings.Contains(text, ". "):
		t.Errorf("%s: the documentation is no sentence: %q", name, text)
	case strings.Contains(text, "part of ["):
		t.Errorf("%s: the documentation refers to an interface instead of telling: %q", name, text)
	}
}

// documentation returns the documentation of the package in a folder, without its tests.
func documentation(t *testing.T, folder string) *doc.Package {
	t.Helper()
	set := token.NewFileSet()
	var files []*ast.File
	for _, path := range sources(t, folder) {
		f, err := parser.ParseFile(set, path, nil, parser.ParseComments)
		require.NoError(t, err)
		files = append(files, f)
	}
	pkg, err := doc.NewFromFiles(set, files, "github.com/latchkey-go/latchkey/"+folder)
	require.NoError(t, err)
	return pkg
}

// sources returns the paths of the Go files in a folder, without the tests.
func sources(t *testing.T, folder string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	return slices.DeleteFunc(paths, func(path string) bool { return strings.HasSuffix(path, "_test.go") })
}
