package fault

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDurationText(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0s":                0,
		"-1s":               -time.Second,
		"1.5ms":             1500 * time.Microsecond,
		"30s":               30 * time.Second,
		"1m":                time.Minute,
		"1m30s":             90 * time.Second,
		"20m":               20 * time.Minute,
		"1h":                time.Hour,
		"1h0m5s":            time.Hour + 5*time.Second,
		"10h10m":            10*time.Hour + 10*time.Minute,
		"8760h":             year,
		"10 years (87600h)": 10 * year,
	} {
		require.Equal(t, want, DurationText(d))
	}
}
