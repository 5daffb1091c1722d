package interop

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// A lock that is released early stays taken for Redisson too. Its waiters know of a lease of 30 s:
// they get a message, and sleep for the rest of the time.
func TestAtLeastKeepsJavaOut(t *testing.T) {
	t.Parallel()
	const d = 3 * time.Second
	eachVersion(t, func(t *testing.T, version string) {
		s := here(t).stage(t, version, latchkey.Options{}, nil)
		for _, kinds := range [][2]string{{"lock", "lock"}, {"fenced", "fenced"}, {"fair", "fair"}, {"write", "write"}, {"write", "read"}} {
			t.Run(kinds[0]+", "+kinds[1], func(t *testing.T) {
				t.Parallel()
				name := s.prefix + rig.Name(t)
				_, javaSide := lockParticipants(kinds[0], kinds[1])(t, s.client, s.java.as(t), name)
				before := time.Now()
				hold, err := lockOf(s.client, kinds[0], name).Lock(within(t, soon), latchkey.AtLeast(d))
				require.NoError(t, err)
				after := time.Now()
				granted := javaSide.wait()
				listening(t, s.admin, name)
				require.NoError(t, hold.Unlock(context.Background()))
				at := rig.Await(t, patience+soon, "Java acquires", granted)
				javaSide.leave()
				t.Logf("%v after the end", at.Sub(after.Add(d)).Round(time.Millisecond))
				assert.GreaterOrEqual(t, at.Sub(before), d, "not before")
				assert.Less(t, at.Sub(after), d+wakeLimit)
			})
		}
	})
}
