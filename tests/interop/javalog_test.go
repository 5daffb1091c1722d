package interop

import (
	"os"
	"strings"
	"testing"
)

// checkLog fails the test if Redisson has logged an error or an exception since the
// log was checked last. With tests beside each other it may be another one's.
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

// firstComplaint returns the first lines from one that speaks of an error.
func firstComplaint(log string) string {
	lines := strings.SplitAfter(log, "\n")
	for i, line := range lines {
		if strings.Contains(line, " ERROR ") || strings.Contains(line, "Exception") {
			return strings.Join(lines[i:min(i+25, len(lines))], "")
		}
	}
	return ""
}
