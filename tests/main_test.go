// Package tests holds the black-box tests of Latchkey. They use only the public API, a Redis
// server, and the faults that can occur between the two.
package tests

import (
	"testing"

	"github.com/latchkey-go/latchkey/tests/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }
