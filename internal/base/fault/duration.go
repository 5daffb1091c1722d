package fault

import (
	"fmt"
	"strings"
	"time"
)

const year = 365 * 24 * time.Hour

// DurationText returns a duration as messages show it. It leaves out minutes and seconds that are
// zero, as in 5m, and adds the number of years, as in "10 years (87600h)".
func DurationText(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	if years := d / year; years > 1 && d%year == 0 {
		return fmt.Sprintf("%d years (%s)", years, text)
	}
	return text
}
