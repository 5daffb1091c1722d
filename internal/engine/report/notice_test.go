package report_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/engine/report"
)

// The text of a joined error has line breaks, and each of its parts may begin with the prefix of
// the library.
func TestLogValuesHaveOneLine(t *testing.T) {
	var log bytes.Buffer
	r := report.New(slog.New(slog.NewTextHandler(&log, nil)), nil)
	r.Log(report.NoticeRenewal, "job", slog.Any("error", errors.Join(
		errors.New("latchkey: the subscription connection broke"), errors.New("latchkey: i/o timeout"))))
	require.NoError(t, r.Close(context.Background(), time.Minute))
	assert.Contains(t, log.String(), `lock=job error="latchkey: the subscription connection broke; i/o timeout"`)
}
