package line

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// A wait that ends because the server is down says so once, and so it does if the last attempt
// failed for the reason of the one before.
func TestWaitEnded_gives_each_reason_once(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	refused, broken := outcome.Unavailable(errors.New("refused")), outcome.Unavailable(errors.New("broken"))
	for name, c := range map[string]struct {
		last error
		want []string
	}{
		"the same reason": {last: refused, want: []string{"refused"}},
		"another reason":  {last: broken, want: []string{"refused", "broken"}},
	} {
		err := waitEnded(WithContextEnd(ctx, refused), c.last, false, false)
		assert.ErrorIs(t, err, fault.ErrUnavailable, name)
		assert.ErrorIs(t, err, context.Canceled, name)
		for _, reason := range c.want {
			assert.Equal(t, 1, strings.Count(err.Error(), reason), err)
		}
	}
}
