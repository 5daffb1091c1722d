package interop

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/tests/history"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// contestants says who contends, and for how long.
type contestants struct {
	processes int // of this library
	java      []*java
	threads   int // of each process
	lasts     time.Duration
}

// Processes of this library and of two versions of Redisson contend for one name. The stays that
// they write down show that there were never too many inside. LATCHKEY_TEST_INTEROP_TIME sets for
// how long they contend, and adds processes.
func TestExclusion(t *testing.T) {
	const variable = "LATCHKEY_TEST_INTEROP_TIME"
	each, kinds := 2, []string{"lock", "fenced", "spin", "fair", "rw", "semaphore", "permit", "latch", "multi"}
	switch {
	case os.Getenv(variable) != "":
		each = 4
	case testing.Short():
		kinds = []string{"fair", "rw", "permit"} // each waits and is woken in its own way
	}
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			rig.Repeated(t, variable, time.Second, func(t *testing.T, lasts time.Duration) {
				t.Helper()
				where := here(t)
				var java []*java
				for _, version := range versions() {
					java = append(java, where.java(t, version))
				}
				newExclusionContest(t, where, kind, contestants{processes: each, java: java, threads: each, lasts: lasts}).hold()
			})
		})
	}
}

// exclusionContest is a contest for one name between both sides.
type exclusionContest struct {
	contestants
	t       *testing.T
	raw     rueidis.Client
	contest contest
	dir     string
	diaries []string
}

func newExclusionContest(t *testing.T, where place, kind string, who contestants) *exclusionContest {
	t.Helper()
	a := &exclusionContest{contestants: who, t: t, raw: where.raw(t), dir: t.TempDir()}
	a.contest = contest{
		URL: where.server.URL(), Kind: kind, Name: rig.Name(t), Threads: a.threads, Millis: a.lasts.Milliseconds(),
		Parties: a.threads * (a.processes + len(a.java)), Until: time.Now().Add(a.lasts).UnixNano(),
	}
	if kind == "semaphore" || kind == "permit" {
		permits := a.raw.B().Set().Key(a.contest.Name).Value(strconv.Itoa(poolSize)).Build()
		require.NoError(t, a.raw.Do(t.Context(), permits).Error())
	}
	return a
}

func (a *exclusionContest) capacity() int {
	if a.contest.Kind == "semaphore" || a.contest.Kind == "permit" {
		return poolSize
	}
	return alone
}

// hold runs the contest, checks its result, and returns what each side achieved.
func (a *exclusionContest) hold() map[string]outcome {
	a.t.Helper()
	outcomes := a.run()
	stays, err := history.Read(a.diaries...)
	require.NoError(a.t, err)
	history.CheckStays(a.t, a.capacity(), stays)
	for side, o := range outcomes {
		if len(o.Shares) == 0 {
			continue
		}
		assert.Positive(a.t, o.Passes, "%s never came in", side)
		a.t.Logf("%s: %d passes, %.0f/s, the longest wait %v", side, o.Passes,
			float64(o.Passes)/a.lasts.Seconds(), o.wait(1).Round(time.Millisecond))
	}
	a.checkCounters(stays)
	if a.capacity() == poolSize {
		a.checkPool()
	}
	return outcomes
}

// checkPool checks that all permits have come back: the counter is full, and no ID is held.
func (a *exclusionContest) checkPool() {
	a.t.Helper()
	left, err := readNumber(a.t.Context(), a.raw, a.contest.Name)
	require.NoError(a.t, err)
	assert.EqualValues(a.t, poolSize, left, "permits at the end")
	ids := a.raw.B().Zcard().Key("{" + a.contest.Name + "}:timeout").Build()
	held, err := a.raw.Do(a.t.Context(), ids).AsInt64()
	require.NoError(a.t, err)
	assert.Zero(a.t, held, "ids that are held at the end")
}

// subscriptionTimeout is an error that Redisson also has among its own threads, when many threads
// of one client subscribe and unsubscribe on a busy machine.
const subscriptionTimeout = "Unable to acquire subscription lock"

// run lets all contestants contend and returns what each side achieved.
func (a *exclusionContest) run() map[string]outcome {
	a.t.Helper()
	var children []*rig.ChildProcess
	for range a.processes {
		job, err := json.Marshal(a.job())
		require.NoError(a.t, err)
		children = append(children, contestant.Start(a.t, string(job)))
	}
	var answers []<-chan answer
	for _, j := range a.java {
		answers = append(answers, j.on("contest").start("contest.run", a.javaJob()))
	}
	outcomes := map[string]outcome{}
	for i, c := range answers {
		side := "Redisson " + a.java[i].jvm.version
		answer := rig.Await(a.t, a.lasts+time.Minute, side, c)
		if err := answer.err(); err != nil && strings.Contains(err.Error(), subscriptionTimeout) {
			a.t.Logf("%s gave up: %v", side, err)
			continue
		}
		sum := outcomes[side]
		sum.add(value[outcome](a.t, answer))
		outcomes[side] = sum
	}
	outcomes["Go"] = a.childOutcomes(children)
	return outcomes
}

func (a *exclusionContest) childOutcomes(children []*rig.ChildProcess) (sum outcome) {
	a.t.Helper()
	for _, child := range children {
		o := outcome{}
		require.NoError(a.t, json.Unmarshal([]byte(child.Line(a.t, a.lasts+time.Minute, "outcome")), &o))
		child.Wait(a.t, soon)
		sum.add(o)
	}
	return sum
}

// job is the contest with a diary of its own.
func (a *exclusionContest) job() contest {
	job := a.contest
	job.Diary = filepath.Join(a.dir, strconv.Itoa(len(a.diaries)))
	a.diaries = append(a.diaries, job.Diary)
	return job
}

func (a *exclusionContest) javaJob() (f fields) {
	a.t.Helper()
	text, err := json.Marshal(a.job())
	require.NoError(a.t, err)
	require.NoError(a.t, json.Unmarshal(text, &f))
	f["until"], f["from"] = a.contest.Until, a.contest.From // as floats they would lose digits
	return f
}

// checkCounters compares each unprotected counter with the stays that counted it.
func (a *exclusionContest) checkCounters(stays []history.Stay) {
	a.t.Helper()
	counted := map[string]int64{}
	for _, s := range stays {
		if s.Permits == alone {
			counted[s.Key]++
		}
	}
	for name, want := range counted {
		got, err := counter{a.raw, name}.read(a.t.Context())
		require.NoError(a.t, err)
		assert.Equal(a.t, want, got, "the unprotected counter of %s", name)
	}
}
