// Package tests holds the black-box tests of Latchkey: they know the public API, a
// Redis server and what can go wrong between the two.
package tests

import (
	"testing"

	"github.com/latchkey-go/latchkey/tests/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }
