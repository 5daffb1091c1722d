package outcome

import (
	"encoding/binary"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// rueidis panics at a redirection without an address.
func TestRedirection(t *testing.T) {
	for text, want := range map[string]struct {
		address  string
		asks, ok bool
	}{
		"MOVED 3999 127.0.0.1:6381": {"127.0.0.1:6381", false, true},
		"ASK 3999 127.0.0.1:6381":   {"127.0.0.1:6381", true, true},
		"MOVED 3999":                {},
		"MOVED":                     {},
		"ASK":                       {},
		"ERR no such node here":     {},
	} {
		address, asks, ok := Redirection(replied(t, text))
		assert.Equal(t, want.ok, ok, text)
		if ok {
			assert.Equal(t, want.address, address, text)
			assert.Equal(t, want.asks, asks, text)
		}
	}
	_, _, ok := Redirection(rueidis.Nil)
	assert.False(t, ok)
}

// replied returns the error of a reply with this text, which rueidis makes only of what it has
// stored or received.
func replied(t *testing.T, text string) error {
	t.Helper()
	stored := append(make([]byte, 7), '-') // no expiry, an error
	stored = append(binary.BigEndian.AppendUint64(stored, uint64(len(text))), text...)
	var message rueidis.RedisMessage
	require.NoError(t, message.CacheUnmarshalView(stored))
	return message.Error()
}
