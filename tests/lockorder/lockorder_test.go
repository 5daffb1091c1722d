package lockorder

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	_ "github.com/latchkey-go/latchkey" // so that a change of the library invalidates cached results
)

// row is a line of the table in mutexorder.go.
type row struct {
	place int
	long  bool            // held during waits
	also  map[string]bool // under which others it may be locked, and what else may happen under it
}

// table parses the comment in mutexorder.go.
func table(t *testing.T) map[string]row {
	t.Helper()
	text, err := os.ReadFile("../../internal/mutexorder.go")
	require.NoError(t, err)
	rows, blocks := map[string]row{}, 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimPrefix(line, "//\t"), "|")
		if len(cells) != 3 {
			continue
		}
		name := strings.TrimSpace(cells[0])
		if name == "mutex" {
			blocks++
			continue
		}
		also := map[string]bool{}
		for each := range strings.SplitSeq(cells[2], ",") {
			also[strings.TrimSpace(each)] = true
		}
		delete(also, "")
		require.NotContains(t, rows, name, "two lines")
		rows[name] = row{place: len(rows), long: blocks == 1, also: also}
	}
	require.Equal(t, 2, blocks)
	return rows
}

// The library locks its mutexes in the order that mutexorder.go documents. Under short ones it
// neither waits nor calls foreign code.
func TestOrderOfMutexes(t *testing.T) {
	t.Parallel()
	rows := table(t)
	order, err := Of("../..", []string{"FIFOMutex"}, "github.com/latchkey-go/latchkey", "github.com/latchkey-go/latchkey/internal/...")
	require.NoError(t, err)
	for _, name := range order.Mutexes {
		_, listed := rows[name]
		assert.True(t, listed, "%s has no line in the table of mutexorder.go", name)
	}
	for name := range rows {
		assert.True(t, slices.Contains(order.Mutexes, name), "%s is in the table of mutexorder.go, and is no mutex", name)
	}
	if t.Failed() {
		return
	}
	for n, way := range order.Nestings {
		calls := strings.Join(way, "\n\t")
		held, taken := rows[n.Held], rows[n.Taken]
		switch {
		case n.Taken == Wait || n.Taken == Foreign:
			assert.True(t, held.long || held.also[n.Taken], "%s under %s:\n\t%s", n.Taken, n.Held, calls)
		case n.Held == n.Taken:
			assert.True(t, held.also["itself"], "%s under another %s:\n\t%s", n.Taken, n.Held, calls)
		case held.long && taken.also[n.Held]: // an exception that the table explains
		case !held.long:
			assert.True(t, taken.also[n.Held], "%s is locked under %s, which its line does not name:\n\t%s", n.Taken, n.Held, calls)
			fallthrough
		default:
			assert.Less(t, held.place, taken.place, "%s is locked under %s, which stands further down:\n\t%s", n.Taken, n.Held, calls)
		}
	}
	for name, row := range rows {
		for also := range row.also {
			n := Nesting{also, name}
			switch also {
			case "itself":
				n.Held = name
			case Wait, Foreign:
				n = Nesting{name, also}
			}
			assert.NotNil(t, order.Nestings[n], "%s under %s does not happen: take it out of the table", n.Taken, n.Held)
		}
	}
}

// The analysis finds exactly the nestings in a package made for this test.
func TestNestingsAreFound(t *testing.T) {
	t.Parallel()
	order, err := Of("testdata/sample", []string{"turn"}, ".")
	require.NoError(t, err)
	assert.Equal(t, []string{"a.mu", "b.mu", "c.mu", "d.mu", "e.turn", "f.mu", "g.mu", "h.mu"}, order.Mutexes)
	var found []string
	for n := range order.Nestings {
		found = append(found, n.Held+" → "+n.Taken)
	}
	assert.ElementsMatch(t, []string{
		"a.mu → b.mu", "b.mu → c.mu", "b.mu → d.mu", "c.mu → d.mu", "d.mu → e.turn", "e.turn → f.mu", "g.mu → g.mu", "f.mu → h.mu",
		"a.mu → f.mu", "a.mu → h.mu", "a.mu → a wait", "h.mu → foreign code", "h.mu → a wait",
	}, found)
}
