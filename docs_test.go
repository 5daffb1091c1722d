package latchkey

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDocumentation checks the documentation as go doc shows it: methods of an embedded type appear under each
// type that embeds it.
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

// TestContractsAreInFull checks that the documentation of each method of each lock names every error that the
// method returns.
func TestContractsAreInFull(t *testing.T) {
	methods := map[string]string{}
	for _, each := range documentation(t, ".").Types {
		for _, f := range each.Methods {
			methods[each.Name+"."+f.Name] = f.Doc
		}
	}
	common := []string{"ErrNotAcquired", "ErrUnavailable", "ErrUnknownOutcome", "ErrClosed", "ErrWrongKind", "ErrInvalid", "*rueidis.RedisError"}
	for _, lock := range []string{"Mutex", "Lock", "FencedLock", "SpinLock", "FairLock", "ReadLock", "WriteLock", "MultiLock", "RedLock"} {
		contains(t, methods, lock+".Lock", append(common, "[Wait]", "[Lease]", "[MaxHold]", "[As]", "[Note]", "nil error", "ctx ended", "background")...)
		contains(t, methods, lock+".TryLock", "ErrNotAcquired", "ErrUnavailable", "[Lease]", "[Note]", "not", "as for Lock")
		contains(t, methods, lock+".Do", "error of Lock", "error of fn", "ErrLost", "panics", "HoldFrom returns it")
		contains(t, methods, lock+".IsLocked", "out of date", "errors")
		contains(t, methods, lock+".RemainingLease", "0 if", "errors")
		contains(t, methods, lock+".Inspect", "ErrUnavailable", "ErrClosed", "ErrWrongKind", "ErrInvalid")
		contains(t, methods, lock+".ForceUnlock", "reports", "renewal", "ErrUnknownOutcome")
	}
	contains(t, methods, "Election.Campaign", append(common, "[Wait]", "[Lease]", "[MaxHold]", "[As]", "[Note]", "nil error", "ctx ended", "background")...)
	contains(t, methods, "Election.Leader", "ErrUnavailable", "ErrClosed", "ErrWrongKind", "ErrInvalid", "out of date")
	contains(t, methods, "Election.Observe", "ErrUnavailable", "ErrClosed", "ErrWrongKind", "ErrInvalid", "PollCeiling", "Terms never go back")
	contains(t, methods, "Leadership.Proclaim", "ErrNotHeld", "ErrLost", "ErrUnknownOutcome", "ErrInvalid")
	// What is the same for several locks is said in the same words.
	const (
		unavailable = "- ErrUnavailable: the server could not be reached or did not answer by the end of the wait " +
			"- ErrUnknownOutcome, besides one of these two: a request was sent and not answered, perhaps an earlier one; " +
			"the client undoes in the background what it may have acquired"
		unconfirmed = "- ErrNotReplicated: fewer replicas than [Options.Replicas] requires confirmed the "
		lastDecides = "No error matches both ErrNotAcquired and ErrUnavailable; the last attempt decides. " +
			"If ctx ended, the error also matches that of ctx. The end of Wait matches no context error. " +
			"If ctx had ended before the call, nothing was sent, and the error matches only that of ctx."
		lostBefore = "- ErrNotAcquired and ErrLost: the hold to be re-entered was lost before this call entered it"
		unaffected = "After any other error this call holds nothing, and a hold that it tried to re-enter is not affected."
	)
	for _, method := range []string{"Mutex.Lock", "Lock.Lock", "FencedLock.Lock", "SpinLock.Lock", "FairLock.Lock", "ReadLock.Lock", "WriteLock.Lock", "Election.Campaign"} {
		contains(t, methods, method, unavailable, unconfirmed, lastDecides)
	}
	for _, lock := range []string{"Lock", "FencedLock", "SpinLock", "FairLock", "ReadLock", "WriteLock"} {
		contains(t, methods, lock+".Lock", lostBefore, unaffected)
		contains(t, methods, lock+".TryLock", "an attempt that meets a server in trouble (silent, loading, failing over) is repeated until")
	}
	contains(t, methods, "Mutex.Lock", "not re-entrant")
	contains(t, methods, "FencedLock.Lock", "[Hold.Token]")
	contains(t, methods, "SpinLock.Lock", "Backoff.Max")
	contains(t, methods, "FairLock.Lock", "StaleWaiterTimeout", "queue")
	contains(t, methods, "ReadLock.Lock", "waiting writer")
	contains(t, methods, "WriteLock.Lock", "ErrUpgrade", "keeps new readers out")
	contains(t, methods, "RedLock.Lock", "majority", "MemberTimeout")
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
