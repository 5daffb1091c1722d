package tests

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// The error replies of the server, in the classes of docs/reference/errors.md: what each operation
// does with each.

// replyTexts returns error replies with their classes: each code of the page, and texts without a
// code.
func replyTexts(t *testing.T) map[string]string {
	t.Helper()
	page, err := os.ReadFile("../docs/reference/errors.md")
	require.NoError(t, err)
	texts := map[string]string{
		"ERR unknown command 'EVALSHA', with args beginning with: 'x' '1' 'TASK 1' ":                                                   "refused",
		"ERR max number of clients reached":                                                                                            "later",
		"ERR Error running script (call to f_" + strings.Repeat("a", 40) + "): @user_script:1: @user_script: 1: -MISCONF Redis is":     "later",
		"ERR Script attempted to access a non local key in a cluster node script: " + strings.Repeat("b", 40) + ", on @user_script:1.": "unknown",
		"ERR Connection timed out": "unknown",
		"upstream failure":         "unknown",
		"ERR":                      "unknown",
	}
	for _, row := range regexp.MustCompile("(?m)^\\| (`[A-Z]{3,}`.*?) \\| (refused|later|elsewhere|unknown) \\|").FindAllStringSubmatch(string(page), -1) {
		for _, code := range regexp.MustCompile("`([A-Z]{3,})`").FindAllStringSubmatch(row[1], -1) {
			if code[1] != "ERR" && code[1] != "NOSCRIPT" { // rueidis sends the text of the script
				texts[code[1]+" for a reason"] = row[2]
			}
		}
	}
	require.Greater(t, len(texts), 30)
	return texts
}

// needReply skips the test of a reply that rueidis does not return from a cluster: it sends the
// command to another node, or once more.
func needReply(t *testing.T, server *rig.Server, text string) {
	t.Helper()
	if code, _, _ := strings.Cut(text, " "); server.Clustered() && slices.Contains([]string{"CLUSTERDOWN", "MOVED", "ASK"}, code) {
		t.Skip("rueidis itself acts on it")
	}
}

// replied checks that an error is what an operation returns for replies of a class, with the reply
// in its chain.
func replied(t *testing.T, class, text string, changes bool, err error) {
	t.Helper()
	require.Error(t, err)
	var reply *rueidis.RedisError
	if assert.ErrorAs(t, err, &reply) {
		assert.Equal(t, strings.TrimPrefix(text, "ERR "), reply.Error())
	}
	assert.NotErrorIs(t, err, latchkey.ErrNotAcquired)
	assert.Equal(t, class != "refused", errors.Is(err, latchkey.ErrUnavailable), "unavailable: %v", err)
	assert.Equal(t, class == "unknown" && changes, errors.Is(err, latchkey.ErrUnknownOutcome), "unknown: %v", err)
}

// Each operation gets each reply, and does with it what the page says.
func TestEveryReply(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	for text, class := range replyTexts(t) {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			needReply(t, server, text)
			tap, name := rig.NewTap(t, server), rig.Name(t)
			r := &replyTest{tap: tap, name: name, text: text, class: class}
			r.lock = connectVia(t, server, tap.Addr(), persistent).NewLock(name)

			heal := tap.Refuse(rig.Mentions(name), text)
			once := connectVia(t, server, tap.Addr(), latchkey.Options{RetryBudget: 100 * time.Millisecond}).NewLock(name)
			_, err := once.TryLock(t.Context())
			for try := 0; try < 10 && class != "unknown" && errors.Is(err, latchkey.ErrUnknownOutcome); try++ {
				_, err = once.TryLock(t.Context()) // the reply was late, on a busy machine
			}
			if errors.As(err, new(*rueidis.RedisError)) { // the last try may be one without a reply too
				replied(t, class, text, true, err)
			}
			_, err = once.Inspect(t.Context())
			require.Error(t, err)
			heal()

			var hold *latchkey.Hold
			r.meets(t, "a call that waits", func() (err error) { hold, err = r.lock.Lock(within(t, soon)); return err })
			if hold == nil {
				hold = mustLock(t, r.lock)
			}
			r.meets(t, "an extension", func() error { return hold.Extend(t.Context(), time.Minute) })
			r.meets(t, "a query", func() error { _, err := isLocked(t.Context(), r.lock); return err })
			assert.NoError(t, hold.Err())
			if strings.HasPrefix(text, "WRONGTYPE") {
				return // a release knows from it that the hold is lost
			}
			r.meets(t, "a release", func() error { return hold.Unlock(t.Context()) })
			if class != "refused" {
				assert.NoError(t, free(rig.NewAdmin(t, server), name)())
			}
		})
	}
}

// replyTest is a lock behind a tap that answers with one text.
type replyTest struct {
	tap               *rig.Tap
	name, text, class string
	lock              *latchkey.Lock
}

// meets runs an operation that gets the reply at first. Unless that refuses, the operation is
// repeated and succeeds when the trouble is over.
func (r *replyTest) meets(t *testing.T, what string, operation func() error) {
	t.Helper()
	heal := r.tap.Refuse(rig.Mentions(r.name), r.text)
	defer heal()
	r.tap.Forget()
	done := make(chan error, 1)
	go func() { done <- operation() }()
	if r.class == "refused" {
		replied(t, r.class, r.text, true, rig.Await(t, soon, what, done))
		return
	}
	rig.Eventually(t, soon, what+" is repeated", func() error {
		if len(mentioning(r.tap, r.name)) < 2 {
			return errors.New("not yet")
		}
		return nil
	})
	heal()
	require.NoError(t, rig.Await(t, soon, what, done), what)
}

// oneReplyOfEach has a reply of each class.
var oneReplyOfEach = map[string]string{
	"refused": "NOPERM no permissions", "later": "MISCONF Redis is configured to save RDB snapshots",
	"elsewhere": "READONLY You can't write against a read only replica.", "unknown": "ERR Connection timed out",
}

// A renewal is repeated whatever the reply.
func TestEveryReply_to_a_renewal(t *testing.T) {
	t.Parallel()
	for class, text := range oneReplyOfEach {
		t.Run(class, func(t *testing.T) {
			t.Parallel()
			tap, name := rig.NewTap(t, rig.Shared()), rig.Name(t)
			options := latchkey.Options{Lease: 3 * time.Second}
			hold := mustLock(t, connectVia(t, rig.Shared(), tap.Addr(), options).NewLock(name))
			heal := tap.Refuse(rig.Mentions(name), text)
			tap.Forget()
			rig.Eventually(t, soon, "a renewal", func() error {
				if len(mentioning(tap, name)) == 0 {
					return errors.New("not yet")
				}
				return nil
			})
			heal()
			renewedAgain(t, options.Lease, hold)
			assert.NoError(t, hold.Err())
			mustUnlock(t, hold)
		})
	}
}

// What got no answer is undone when the trouble is over, unless the server refuses.
func TestEveryReply_to_an_undo(t *testing.T) {
	t.Parallel()
	for class, text := range oneReplyOfEach {
		if class == "refused" {
			continue
		}
		t.Run(class, func(t *testing.T) {
			t.Parallel()
			tap, name := rig.NewTap(t, rig.Shared()), rig.Name(t)
			admin := rig.NewAdmin(t, rig.Shared())
			lock := connectVia(t, rig.Shared(), tap.Addr(), latchkey.Options{RetryBudget: 300 * time.Millisecond}).NewLock(name)
			lost := tap.Lose(1, rig.Mentions(name), rig.Cut)
			heal := tap.Refuse(rig.Both(rig.Mentions(name), func(rig.Command) bool { return len(lost) > 0 }), text)
			_, err := lock.TryLock(t.Context())
			require.ErrorIs(t, err, latchkey.ErrUnknownOutcome)
			require.Error(t, free(admin, name)())
			heal()
			rig.Eventually(t, soon, "the undo", free(admin, name))
		})
	}
}

// Waiters whose subscription gets a reply of any class are woken, by a poll at the latest.
func TestEveryReply_to_a_subscription(t *testing.T) {
	t.Parallel()
	for class, text := range oneReplyOfEach {
		t.Run(class, func(t *testing.T) {
			t.Parallel()
			tap, name := rig.NewTap(t, rig.Shared()), rig.Name(t)
			hold := mustLock(t, connect(t, rig.Shared()).NewLock(name))
			tap.Refuse(rig.Named("SUBSCRIBE", "SSUBSCRIBE"), text)
			waiter := lockInBackground(within(t, soon), connectVia(t, rig.Shared(), tap.Addr(), polling).NewLock(name))
			rig.Eventually(t, soon, "an attempt", func() error {
				if len(mentioning(tap, name)) == 0 {
					return errors.New("not yet")
				}
				return nil
			})
			mustUnlock(t, hold)
			got := rig.Await(t, soon, "the waiter", waiter)
			require.NoError(t, got.err)
			mustUnlock(t, got.hold)
		})
	}
}
