package interop

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// stay is a time that somebody spent inside, by the machine's clock: from after the
// acquisition to before the release, so that the server's view of it is longer.
type stay struct {
	from, to int64
	weight   int
	token    int64
	key      string
}

// readDiaries reads what all processes have written: lines of from, to, weight, token
// and key.
func readDiaries(t *testing.T, files []string) (stays []stay) {
	t.Helper()
	for _, name := range files {
		file, err := os.Open(name)
		require.NoError(t, err)
		for lines := bufio.NewScanner(file); lines.Scan(); {
			s := stay{}
			_, err := fmt.Sscan(lines.Text(), &s.from, &s.to, &s.weight, &s.token, &s.key)
			require.NoError(t, err, lines.Text())
			stays = append(stays, s)
		}
		require.NoError(t, file.Close())
	}
	return stays
}

// judge returns what is wrong with a history: more weight at one moment than fits, or
// tokens that do not grow.
func judge(stays []stay, capacity int) string {
	byKey := map[string][]stay{}
	for _, s := range stays {
		byKey[s.key] = append(byKey[s.key], s)
	}
	var wrong []string
	for key, all := range byKey {
		wrong = append(wrong, crowded(key, all, capacity), unordered(key, all))
	}
	return strings.Join(slices.DeleteFunc(wrong, func(s string) bool { return s == "" }), "\n")
}

// change is somebody who comes in or leaves.
type change struct {
	at     int64
	weight int
}

func crowded(key string, stays []stay, capacity int) string {
	changes := make([]change, 0, 2*len(stays))
	for _, s := range stays {
		changes = append(changes, change{s.from, s.weight}, change{s.to, -s.weight})
	}
	slices.SortFunc(changes, func(a, b change) int { // who leaves first makes room
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.weight, b.weight))
	})
	inside, moments := 0, 0
	for _, c := range changes {
		if inside += c.weight; c.weight > 0 && inside > capacity {
			moments++
		}
	}
	if moments == 0 {
		return ""
	}
	return fmt.Sprintf("%s: %d times of %d were too many inside", key, moments, len(stays))
}

// unordered says where a token was not larger than the one before. A lock without tokens
// has none at all.
func unordered(key string, stays []stay) string {
	if !slices.ContainsFunc(stays, func(s stay) bool { return s.token > 0 }) {
		return ""
	}
	stays = slices.SortedFunc(slices.Values(stays), func(a, b stay) int { return cmp.Compare(a.from, b.from) })
	last := int64(0)
	for _, s := range stays {
		if s.token <= last {
			return fmt.Sprintf("%s: token %d after %d", key, s.token, last)
		}
		last = s.token
	}
	return ""
}

func TestJudge(t *testing.T) {
	one, two := stay{from: 1, to: 5, weight: 1, key: "k"}, stay{from: 4, to: 6, weight: 1, key: "k"}
	assert.Empty(t, judge([]stay{one, two}, 2))
	assert.Contains(t, judge([]stay{one, two}, 1), "too many inside")
	two.key = "other"
	assert.Empty(t, judge([]stay{one, two}, 1))
	two.key, two.from, one.token, two.token = "k", 5, 2, 1
	assert.Contains(t, judge([]stay{one, two}, 1), "token 1 after 2")
	one.token, two.token = 1, 0
	assert.Contains(t, judge([]stay{one, two}, 1), "token 0 after 1")
	one.token, two.token = 0, 1
	assert.Contains(t, judge([]stay{one, two}, 1), "token 0 after 0")
	two.token = 0
	assert.Empty(t, judge([]stay{one, two}, 1))
}
