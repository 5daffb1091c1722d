package tests

import (
	"context"
	"errors"
	"fmt"
	"reflect"
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

// queryMethods are the methods whose first request changes nothing, so that their outcome is not
// unknown.
var queryMethods = []string{
	"Count", "Forget", "ForceUnlock", "Holders", "Inspect", "Leader", "RemainingLease", "Reset", "Result", "State",
	"TrySetCount", "Waiters",
}

// endsHolds are the methods after which a hold is over.
var endsHolds = map[string]bool{"Unlock": true, "Release": true, "ReleaseN": true, "Resign": true, "Downgrade": true}

// waitingMethods are the methods that go on after a reply that is no refusal, until their time is
// over.
var waitingMethods = []string{"Lock", "Acquire", "AcquireN", "Await", "Campaign", "Do", "Run"}

// Each method of each object that sends a request gets each reply, and its error is what the page
// says.
func TestEveryReply_to_each_method(t *testing.T) {
	t.Parallel()
	texts := oneReplyOfEach
	if !testing.Short() {
		texts = map[string]string{}
		for text, class := range replyTexts(t) {
			texts[class+" "+text] = text
		}
	}
	for class, text := range texts {
		class, _, _ := strings.Cut(class, " ")
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			needReply(t, rig.Shared(), text)
			everyMethod(t, class, text)
		})
	}
}

// naming matches the commands of all objects whose names begin with a name.
func naming(name string) rig.Match {
	return func(c rig.Command) bool {
		return slices.ContainsFunc(c.Args, func(arg string) bool { return strings.Contains(arg, name) })
	}
}

func everyMethod(t *testing.T, class, text string) {
	t.Helper()
	tap, name := rig.NewTap(t, rig.Shared()), rig.Name(t)
	options := latchkey.Options{Lease: 10 * time.Minute, RetryBudget: soon}
	if class != "refused" {
		options.RetryBudget = 2 * time.Second
	}
	objects := endedContextObjects(t, connectVia(t, rig.Shared(), tap.Addr(), options), name)
	heal := tap.Refuse(naming(name), text)
	defer heal()
	call := func(last bool) {
		calls := rig.Goroutines(t)
		for _, object := range objects {
			if _, is := object.(*latchkey.Client); is {
				continue // what its methods send, others send too
			}
			for _, m := range methodsWithContext(object) {
				if endsHolds[m.Name] != last {
					continue
				}
				calls.Go(func() {
					wait := soon
					if (class != "refused" || isRed(object)) && slices.Contains(waitingMethods, m.Name) {
						wait = time.Second
					}
					checkReply(t, class, text, fmt.Sprintf("%s.%s", kindOf(object), m.Name), m.Name, callWithin(t, wait, object, m))
				})
			}
		}
		calls.Wait()
	}
	call(false)
	call(true)
}

// isRed reports whether an object is a majority of locks, which waits for its members, whatever
// they reply.
func isRed(object any) bool {
	group, is := object.(*latchkey.MultiLock)
	return is && strings.HasPrefix(group.Name(), "red(")
}

// kindOf returns what an object is, for messages.
func kindOf(object any) string {
	if isRed(object) {
		return "RedLock"
	}
	return fmt.Sprintf("%T", object)
}

// callWithin calls a method with a context that ends after wait. If that was before the call began,
// as on a busy machine, it calls again, a few times.
func callWithin(t *testing.T, wait time.Duration, object any, m reflect.Method) (err error) {
	t.Helper()
	for range 5 {
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		err = callWith(ctx, t, object, m)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, latchkey.ErrUnavailable) || errors.Is(err, latchkey.ErrNotAcquired) {
			break
		}
	}
	return err
}

// checkReply checks the error of a method whose requests got a reply of a class.
func checkReply(t *testing.T, class, text, what, method string, err error) {
	t.Helper()
	switch {
	case err == nil && method == "Downgrade": // of a hold that is none of a writer: nothing is sent
		return
	case err == nil && strings.HasPrefix(text, "WRONGTYPE") && endsHolds[method]: // it is not held
		return
	}
	if !assert.Error(t, err, what) {
		return
	}
	if slices.Contains(waitingMethods, method) && errors.Is(err, latchkey.ErrNotAcquired) {
		return // a hold of its own client keeps it out: it sends nothing
	}
	var reply *rueidis.RedisError
	isRed := strings.HasPrefix(what, "RedLock") // a member has only 300 ms, and may not answer the last of several tries
	if !errors.As(err, &reply) {
		assert.True(t, class != "refused" || isRed, "%s: %v", what, err)
		assert.ErrorIs(t, err, latchkey.ErrUnavailable, what)
		return
	}
	assert.Equal(t, strings.TrimPrefix(text, "ERR "), reply.Error(), what)
	for _, other := range []error{latchkey.ErrNotAcquired, latchkey.ErrNotHeld, latchkey.ErrLost, latchkey.ErrInvalid, latchkey.ErrClosed} {
		assert.NotErrorIs(t, err, other, what)
	}
	if class != "refused" || !isRed {
		assert.Equal(t, class != "refused", errors.Is(err, latchkey.ErrUnavailable), "%s: %v", what, err)
	}
	unknown := errors.Is(err, latchkey.ErrUnknownOutcome)
	switch changes := !slices.Contains(queryMethods, method) && !strings.HasSuffix(what, "CountDownLatch.Delete"); {
	case !changes, class == "refused":
		assert.False(t, unknown, "%s: %v", what, err)
	case class == "unknown" && !slices.Contains(waitingMethods, method):
		assert.True(t, unknown, "%s: %v", what, err)
	}
}

// A proxy loses its connection after the server has executed a command, and says so with a text of
// its own. What counts, counts once; a lock is held once; and a lock that nobody got to know of is
// given back.
func TestEveryReply_in_place_of_the_answer(t *testing.T) {
	t.Parallel()
	const text = "ERR Connection timed out"
	server := rig.Shared()
	for what, o := range countingOperations {
		if strings.Contains(what, "short time") {
			continue
		}
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			tap, name, ctx := rig.NewTap(t, server), rig.Name(t), within(t, soon)
			client := connectVia(t, server, tap.Addr(), patient)
			prepared, err := o.prepare(ctx, client, name)
			require.NoError(t, err)
			tap.Replace(naming(name), text)
			require.NoError(t, o.do(ctx, client, name, prepared))
			n, err := o.read(ctx, client, name)
			require.NoError(t, err)
			assert.Equal(t, o.want, n)
		})
	}
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		tap, name, admin := rig.NewTap(t, server), rig.Name(t), rig.NewAdmin(t, server)
		lock := k.open(connectVia(t, server, tap.Addr(), patient), name)
		tap.Replace(rig.Mentions(name), text)
		hold := mustLock(t, lock)
		tap.Replace(rig.Mentions(name), text)
		mustUnlock(t, hold)
		require.NoError(t, free(admin, name)())

		hasty := k.open(connectVia(t, server, tap.Addr(), latchkey.Options{RetryBudget: 300 * time.Millisecond}), name)
		tap.Replace(rig.Mentions(name), text)
		heal := tap.Refuse(rig.Mentions(name), text)
		_, err := hasty.TryLock(t.Context())
		require.ErrorIs(t, err, latchkey.ErrUnknownOutcome)
		assert.Error(t, free(admin, name)(), "the server executed it")
		heal()
		rig.Eventually(t, soon, "the undo", free(admin, name))
	})
}
