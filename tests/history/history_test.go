package history

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func inside(from, to int64) Stay { return Stay{Key: "k", From: from, To: to, Permits: 1} }

func TestTooManyInsideAreFound(t *testing.T) {
	assert.True(t, Fit(1, []Stay{inside(1, 5), inside(6, 9)}))
	assert.True(t, Fit(1, []Stay{inside(1, 5), inside(5, 9)}))
	assert.False(t, Fit(1, []Stay{inside(1, 5), inside(4, 6)}))
	assert.True(t, Fit(2, []Stay{inside(1, 5), inside(4, 6)}))
	assert.False(t, Fit(2, []Stay{inside(1, 5), inside(2, 6), inside(3, 7)}))
	other := inside(4, 6)
	other.Key = "other"
	assert.True(t, Fit(1, []Stay{inside(1, 5), other}), "of another object")
}

func TestAWriterIsAlone(t *testing.T) {
	writer, reader := inside(1, 5), inside(6, 9)
	writer.Permits = 100
	assert.True(t, Fit(100, []Stay{writer, reader, reader}))
	reader.From = 4
	assert.False(t, Fit(100, []Stay{writer, reader}))
}

func TestTokensGrow(t *testing.T) {
	one, two := inside(1, 5), inside(6, 9)
	one.Token, two.Token = 1, 2
	assert.True(t, Fit(1, []Stay{one, two}))
	assert.Empty(t, withoutToken([]Stay{one, two}))
	one.Token, two.Token = 2, 1
	assert.False(t, Fit(1, []Stay{one, two}))
	one.Token, two.Token = 2, 2
	assert.False(t, Fit(1, []Stay{one, two}), "issued twice")
	two.Token = 0
	assert.Equal(t, "k", withoutToken([]Stay{one, two}))
}

func TestCallsTakeEffectWhileTheyLast(t *testing.T) {
	order := func(calls ...PermitCall) bool {
		return porcupine.CheckOperations(permitModel(2), permitOperations(calls))
	}
	take := PermitCall{What: Take, N: 2, Begin: 1, End: 4}
	refused := PermitCall{What: Refused, N: 1, Begin: 2, End: 3}
	assert.True(t, order(take, refused), "while it is taken")
	refused.Begin, refused.End = 0, 0
	assert.False(t, order(take, refused), "before it is taken")
	give := PermitCall{What: Give, N: 2, Begin: 5, End: 8}
	assert.True(t, order(take, give, PermitCall{What: Free, N: 2, Begin: 6, End: 7}))
	assert.True(t, order(take, give, PermitCall{What: Free, N: 0, Begin: 6, End: 7}))
	assert.False(t, order(take, give, PermitCall{What: Free, N: 1, Begin: 6, End: 7}))
	assert.False(t, order(take, give, PermitCall{What: Drain, N: 0, Begin: 9, End: 9}))
	assert.False(t, order(give), "nobody has taken them")
}

func TestLatchModel(t *testing.T) {
	order := func(calls ...LatchCall) bool {
		for i := range calls {
			calls[i].Caller, calls[i].Begin, calls[i].End = i, int64(2*i), int64(2*i+1)
		}
		return porcupine.CheckOperations(latchModel, latchOperations(calls))
	}
	set, await := LatchCall{What: LatchSet, N: 1}, LatchCall{What: LatchAwait}
	down := LatchCall{What: LatchCountDown}
	assert.True(t, order(await, set, down, await, down))
	assert.False(t, order(set, await), "it is closed")
	assert.False(t, order(set, set), "it is set already")
	assert.True(t, order(set, LatchCall{What: LatchSetBefore}, LatchCall{What: LatchCount, N: 1}))
	assert.False(t, order(LatchCall{What: LatchSet, N: 2}, down), "one is left")
}

func TestReadUnderstandsWhatIsWritten(t *testing.T) {
	name := filepath.Join(t.TempDir(), "stays")
	want := Stay{Key: "k", From: 2, To: 3, Permits: 5, Token: 6}
	require.NoError(t, os.WriteFile(name, append(want.Append(nil), "1 2 3 torn"...), 0o600))
	got, err := Read(name)
	require.NoError(t, err)
	assert.Equal(t, []Stay{want}, got)
}
