package interop

import (
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/tests/rig"
)

// soon is enough time, on a busy machine, for anything that should happen at once.
const soon = 20 * time.Second

// java is a Redisson client for one test.
type java struct {
	t     *testing.T
	jvm   *jvm
	id    string
	scope string // of the names of threads, so that parallel subtests have their own
}

var clients atomic.Int64

// javaIn opens a client of Redisson at the place in a JVM.
func (p place) javaIn(t *testing.T, j *jvm, settings ...fields) *java {
	t.Helper()
	where := p.address()
	c := &java{t: t, jvm: j, id: fmt.Sprint("client-", clients.Add(1))}
	for _, each := range settings {
		if each != nil {
			where = merge(where, fields{"settings": each})
		}
	}
	opened := rig.Await(t, patience, "a client of Redisson", c.on("main").start("client.open", where))
	require.NoError(t, opened.err())
	t.Cleanup(func() {
		select {
		case <-j.exited: // the test has killed it
		default:
			c.on("main").do("client.close", nil)
			j.checkLog(t)
		}
	})
	return c
}

// thread is one of the client's threads. Locks belong to threads.
type thread struct {
	*java
	name string
}

func (c *java) on(name string) thread { return thread{c, name} }

// start begins an operation in the thread.
func (th thread) start(op string, f fields) <-chan answer {
	all := fields{"client": th.id}
	for name, value := range f {
		all[name] = value
	}
	return th.jvm.send(th.id+"-"+th.scope+th.name, op, all)
}

// try executes an operation and returns its answer.
func (th thread) try(op string, f fields) answer {
	th.t.Helper()
	return rig.Await(th.t, soon, "Java's answer to "+op, th.start(op, f))
}

// do executes an operation, which must succeed.
func (th thread) do(op string, f fields) answer {
	th.t.Helper()
	a := th.try(op, f)
	require.NoError(th.t, a.err(), op)
	return a
}

// value decodes the result of an operation.
func value[T any](t testing.TB, a answer) T {
	t.Helper()
	var v T
	require.NoError(t, a.err())
	require.NoError(t, json.Unmarshal(a.Value, &v))
	return v
}

// number, text and truth execute an operation and return its result.
func (th thread) number(op string, f fields) int64 {
	th.t.Helper()
	return value[int64](th.t, th.do(op, f))
}

func (th thread) truth(op string, f fields) bool {
	th.t.Helper()
	return value[bool](th.t, th.do(op, f))
}
