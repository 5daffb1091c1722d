package interop

import (
	"os"
	"strings"
	"testing"
)

// latest and oldest are the released versions of Redisson that the promise is for.
const (
	latest = "4.7.0"
	oldest = "3.24.3"
)

// versions are those to test against, the newest first.
func versions() []string {
	if chosen := os.Getenv("LATCHKEY_TEST_REDISSON"); chosen != "" {
		return strings.Split(chosen, ",")
	}
	return []string{latest, oldest}
}

// eachVersion runs a test against every version.
func eachVersion(t *testing.T, test func(t *testing.T, version string)) {
	t.Helper()
	for _, version := range versions() {
		t.Run("Redisson"+version, func(t *testing.T) {
			t.Parallel()
			test(t, version)
		})
	}
}
