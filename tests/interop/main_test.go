package interop

import (
	"testing"

	"github.com/latchkey-go/latchkey/tests/rig"
)

func TestMain(m *testing.M) { rig.Main(m, killSharedJVMs) }
