package latchkey

import (
	"context"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/primitive/group"
)

// Pages quote messages as the library writes them.

func pageText(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	return string(text)
}

func TestQuotedError_wrong_kind(t *testing.T) {
	c := newTestClient(t, Options{})
	require.NoError(t, c.engine().Rueidis.Do(t.Context(), c.engine().Rueidis.B().Hset().Key("orders:42").FieldValue().FieldValue("id", "42").Build()).Error())
	_, err := c.NewLock("orders:42").Lock(t.Context())
	require.ErrorIs(t, err, ErrWrongKind)
	assert.Contains(t, pageText(t, "docs/reference/locks.md"), "`"+err.Error()+"`")
}

func TestQuotedError_busy(t *testing.T) {
	busy := &fault.BusyError{Holder: "1f6b…:17", Labels: func(string) string { return "payments-7" }, Left: 28 * time.Second}
	text := strings.TrimPrefix(busy.Error(), ErrNotAcquired.Error()+": ")
	assert.Contains(t, pageText(t, "docs/reference/labels.md"), "`"+text+"`")
}

func TestQuotedError_no_majority(t *testing.T) {
	c := newTestClient(t, Options{})
	round := &group.Tries{Timeout: 300 * time.Millisecond}
	for i := range 3 {
		round.Members = append(round.Members, c.NewLock("job").self())
		if i > 0 {
			round.Failures = append(round.Failures, group.Failure{Index: i, Err: ErrUnavailable})
		}
	}
	_, err := round.NoMajority(1, 2, false)
	text, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "latchkey: "), "member 3")
	assert.Contains(t, pageText(t, "docs/reference/several.md"), "`"+text+"…`")
}

func TestQuotedError_loss(t *testing.T) {
	lines := make(chan string, 100)
	c := newTestClient(t, Options{Lease: time.Second, Logger: slog.New(loggedTo(lines))})
	lock := c.NewLock("report:daily")
	err := lock.Do(t.Context(), func(ctx context.Context) error {
		forced, err := lock.ForceUnlock(context.WithoutCancel(ctx))
		assert.True(t, forced)
		<-ctx.Done()
		return err
	})
	require.ErrorIs(t, err, ErrLost)
	page := pageText(t, "docs/start/lock.md")
	assert.Contains(t, page, " lost the lock: "+err.Error()+"\n")
	assert.Contains(t, page, " WARN "+<-lines+" lock=report:daily ")
}

// loggedTo is a handler that sends the text of each line.
type loggedTo chan string

func (l loggedTo) Enabled(context.Context, slog.Level) bool { return true }
func (l loggedTo) Handle(_ context.Context, record slog.Record) error {
	l <- record.Message
	return nil
}
func (l loggedTo) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l loggedTo) WithGroup(string) slog.Handler      { return l }

// The table of log lines has every line, and no others.
func TestQuotedLogLines(t *testing.T) {
	_, table, found := strings.Cut(pageText(t, "docs/reference/events.md"), "| line | subject |")
	require.True(t, found)
	var quoted []string
	for row := range strings.Lines(table) {
		if cells := strings.Split(row, "|"); len(cells) > 2 {
			for _, quote := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[1], -1) {
				quoted = append(quoted, strings.TrimSuffix(quote[1], " …"))
			}
		}
	}
	lines := regexp.MustCompile(`"latchkey: ([^"]+)"`).FindAllStringSubmatch(pageText(t, "internal/engine/report/notice.go"), -1)
	require.NotEmpty(t, lines)
	used := map[string]bool{}
	for _, line := range lines {
		known := false
		for _, quote := range quoted {
			if strings.HasPrefix(line[1], strings.TrimSuffix(quote, "…")) {
				known, used[quote] = true, true
			}
		}
		assert.True(t, known, "the page does not list %q", line[1])
	}
	for _, quote := range quoted {
		assert.True(t, used[quote], "the page lists %q, which is not logged", quote)
	}
}
