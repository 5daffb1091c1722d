package interop

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/tests/rig"
)

// checkLog fails the test if Redisson has logged an error or an exception since the last check. If
// tests run in parallel, it may belong to another test.
func (j *jvm) checkLog(t *testing.T) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	text, err := os.ReadFile(j.log)
	if err != nil {
		t.Error(err)
		return
	}
	news := string(text[j.checked:])
	j.checked = int64(len(text))
	if complaint := firstComplaint(news); complaint != "" {
		t.Errorf("Redisson %s has logged:\n%s", j.version, complaint)
	}
}

// firstComplaint returns the first lines from the one that mentions an error.
func firstComplaint(log string) string {
	lines := strings.SplitAfter(log, "\n")
	for i, line := range lines {
		if strings.Contains(line, " ERROR ") || strings.Contains(line, "Exception") {
			return strings.Join(lines[i:min(i+25, len(lines))], "")
		}
	}
	return ""
}

// The check sees what Redisson logs: here a message that is not a number.
func TestLogIsChecked(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(t *testing.T, version string) {
		where, name := here(t), rig.Name(t)
		own := launch(t, version, t.TempDir())
		t.Cleanup(own.kill)
		j := where.javaIn(t, own)
		hold := mustLock(t, where.connect(t).NewLock(name))
		j.on("waiter").start("lock.lock", fields{"kind": "lock", "name": name})
		listening(t, where.admin, name)
		where.admin.Publish("redisson_lock__channel:{"+name+"}", "garbage")
		rig.Eventually(t, soon, "Redisson complains", func() error {
			text, err := os.ReadFile(own.log)
			if err == nil && firstComplaint(string(text)) == "" {
				err = errors.New("not yet")
			}
			return err
		})
		own.kill() // before its log is checked
		mustUnlock(t, hold)
	})
}
