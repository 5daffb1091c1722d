package interop

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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

// before reports whether a version is older than one that changed something.
func before(t *testing.T, version string, major, minor int) bool {
	t.Helper()
	var ma, mi int
	_, err := fmt.Sscanf(version, "%d.%d", &ma, &mi)
	require.NoError(t, err, version)
	return ma < major || ma == major && mi < minor
}

// fairHangs reports whether fair waiters of a version sleep on when the holder has
// died: before 3.32.0 one that is refused after the time that it was first told gets a
// negative hint, which Redisson takes for no limit. Java holders do that to it, too.
func fairHangs(t *testing.T, version string) bool { t.Helper(); return before(t, version, 3, 32) }

// fairWaitFixed reports whether a version lacks the setting fairLockWaitTimeout.
func fairWaitFixed(t *testing.T, version string) bool { t.Helper(); return before(t, version, 3, 46) }
