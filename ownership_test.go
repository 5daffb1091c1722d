package latchkey

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// What an ownership is made of stays few: what belongs together is a type of its own, such as
// leaseTerm, doubt, holdSet and acquisition.
func TestOwnership_has_few_fields(t *testing.T) {
	require.LessOrEqual(t, reflect.TypeFor[ownership]().NumField(), 20)
}
