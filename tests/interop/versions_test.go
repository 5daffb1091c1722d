package interop

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// latest and oldest are the released versions of Redisson that are supported.
const (
	latest = "4.7.0"
	oldest = "3.24.3"
)

// versions returns the versions to test against, the newest first. Short runs have only this one.
func versions() []string {
	if chosen := os.Getenv("LATCHKEY_TEST_REDISSON"); chosen != "" {
		return strings.Split(chosen, ",")
	}
	if testing.Short() {
		return []string{latest}
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

// before reports whether a version is older than the given one.
func before(t *testing.T, version string, major, minor int) bool {
	t.Helper()
	var ma, mi int
	_, err := fmt.Sscanf(version, "%d.%d", &ma, &mi)
	require.NoError(t, err, version)
	return ma < major || ma == major && mi < minor
}

// fairHangs reports whether fair waiters of a version keep sleeping when the holder has died.
// Before 3.32.0 a waiter that is refused after the time of its first hint gets a negative hint,
// which Redisson takes for no limit. This also happens with Java holders.
func fairHangs(t *testing.T, version string) bool { t.Helper(); return before(t, version, 3, 32) }

// fairWaitFixed reports whether a version lacks the setting fairLockWaitTimeout.
func fairWaitFixed(t *testing.T, version string) bool { t.Helper(); return before(t, version, 3, 46) }
