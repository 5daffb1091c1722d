package ownership_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/engine/ownership"
)

// An ownership has few fields: fields that belong together form a type of their own, such as
// lease.Term, undo.Doubt, hold.Set and acquisition.
func TestOwnership_has_few_fields(t *testing.T) {
	require.LessOrEqual(t, reflect.TypeFor[ownership.Ownership]().NumField(), 20)
}
