package history

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// patience limits the search for an order of a history.
const patience = time.Minute

// CheckStays fails the test if more permits were held at once than each object has, or if
// tokens do not grow.
func CheckStays(tb testing.TB, capacity int, stays []Stay) {
	tb.Helper()
	if key := withoutToken(stays); key != "" {
		tb.Errorf("some holds of %s have a token, and some have none", key)
	}
	CheckPermits(tb, capacity, calls(stays))
}

// Fit reports whether an object with that many permits has room for the stays.
func Fit(capacity int, stays []Stay) bool {
	return porcupine.CheckOperations(permitModel(capacity), permitOperations(calls(stays)))
}

// withoutToken returns the key of a fenced lock if some of its holds have no token, or "".
func withoutToken(stays []Stay) string {
	fenced := map[string]bool{}
	for _, s := range stays {
		fenced[s.Key] = fenced[s.Key] || s.Token > 0
	}
	for _, s := range stays {
		if fenced[s.Key] && s.Token == 0 {
			return s.Key
		}
	}
	return ""
}

// CheckPermits fails the test if the calls cannot be those of objects that began with that many
// permits each.
func CheckPermits(tb testing.TB, capacity int, calls []PermitCall) {
	tb.Helper()
	check(tb, permitModel(capacity), permitOperations(calls))
}

// CheckLatch fails the test if the calls cannot be those of a latch that was open at the beginning.
func CheckLatch(tb testing.TB, calls []LatchCall) {
	tb.Helper()
	check(tb, latchModel, latchOperations(calls))
}

func check(tb testing.TB, model porcupine.Model, ops []porcupine.Operation) {
	tb.Helper()
	result, info := porcupine.CheckOperationsVerbose(model, ops, patience)
	if result != porcupine.Ok {
		tb.Errorf("a history of %d calls is not linearizable (%s); see %s", len(ops), result, picture(model, info))
	}
}

// picture draws the longest order that was found, for a browser, and returns the name of the file.
func picture(model porcupine.Model, info porcupine.LinearizationInfo) string {
	name := filepath.Join(os.TempDir(), fmt.Sprintf("latchkey-history-%d.html", time.Now().UnixNano()))
	if err := porcupine.VisualizePath(model, info, name); err != nil {
		return err.Error()
	}
	return name
}
