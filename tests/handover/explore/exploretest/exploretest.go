// Package exploretest has what the tests of all models share: which models they explore in which
// runs, and how.
package exploretest

import (
	"os"
	"slices"
	"testing"

	"github.com/latchkey-go/latchkey/tests/handover/explore"
)

// Chosen returns what a run explores. The race detector makes an exploration ten times slower and
// has nothing to find in it, so a run with it has only what is quick. CI also runs the models
// without it. What takes minutes and gigabytes is explored only if LATCHKEY_TEST_HANDOVER is set.
func Chosen[C any](quick, usually, unlessShort, onRequest []C) []C {
	all := slices.Clone(quick)
	if !raced {
		all = append(all, usually...)
	}
	if !raced && !testing.Short() {
		all = append(all, unlessShort...)
	}
	if os.Getenv("LATCHKEY_TEST_HANDOVER") != "" {
		all = append(all, onRequest...)
	}
	return all
}

// Holds explores a model, and fails the test if a property does not hold in it.
func Holds[S comparable, T explore.Step](t *testing.T, m explore.Model[S, T]) {
	t.Helper()
	if check(t, m, "") != "" {
		t.Fail()
	}
}

// Violates explores a model with a mistake, and fails the test if that does not violate the
// property.
func Violates[S comparable, T explore.Step](t *testing.T, m explore.Model[S, T], property string) {
	t.Helper()
	if check(t, m, property) != property {
		t.Errorf("not found: %s", property)
	}
}

// check explores a model, and logs the way to a failure.
func check[S comparable, T explore.Step](t *testing.T, m explore.Model[S, T], only string) (wrong string) {
	t.Helper()
	r := explore.All(m, only)
	t.Log(r)
	if r.Wrong != "" {
		t.Log(r.Wrong + ":")
		for _, line := range explore.Trace(m, r) {
			t.Log(line)
		}
	}
	return r.Wrong
}
