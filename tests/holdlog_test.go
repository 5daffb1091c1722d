package tests

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// logged returns what the JSON handler of package log/slog writes for a hold.
func logged(t *testing.T, hold *latchkey.Hold) map[string]any {
	t.Helper()
	var text bytes.Buffer
	slog.New(slog.NewJSONHandler(&text, nil)).Info("", "hold", hold)
	var line struct{ Hold map[string]any }
	require.NoError(t, json.Unmarshal(text.Bytes(), &line), text.String())
	return line.Hold
}

// A logged hold shows which hold it is, and whether it is held.
func TestLogOfAHold(t *testing.T) {
	t.Parallel()
	client, name := connect(t, rig.Shared()), rig.Name(t)
	hold := mustLock(t, client.NewFencedLock(name))
	line := logged(t, hold)
	assert.Equal(t, name, line["name"])
	assert.InDelta(t, float64(hold.Token()), line["token"], 0)
	assert.InDelta(t, 1, line["count"], 0)
	assert.Positive(t, line["valid_for"])
	assert.Len(t, line, 4, line)

	mustUnlock(t, hold)
	line = logged(t, hold)
	assert.Equal(t, latchkey.ErrNotHeld.Error(), line["err"])
	assert.Len(t, line, 3, line)

	several := mustLock(t, latchkey.NewMultiLock(client.NewLock(name+"1"), client.NewLock(name+"2")))
	assert.Equal(t, several.Name(), logged(t, several)["name"])
	mustUnlock(t, several)
	assert.Equal(t, latchkey.ErrNotHeld.Error(), logged(t, nil)["err"])
}

// A hold can be passed on although it was logged, because logging does not query its owner.
func TestLogOfAHoldLeavesItAsItIs(t *testing.T) {
	t.Parallel()
	c := newHotLock(t, lockKind, longTurn)
	_, next := c.pass(t, func(first *latchkey.Hold) { logged(t, first) })
	mustUnlock(t, next)
}
