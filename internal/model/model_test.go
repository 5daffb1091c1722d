package model

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/testredis"
)

// model is the reference of one primitive, for one sequence.
type model interface {
	actions() []modelAction
	// check fails the sequence if a property does not hold.
	check()
	// finish releases everything, and checks that nothing is left.
	finish()
}

// modelAction is something that can happen.
type modelAction struct {
	name   string
	weight int
	do     func(d dice)
}

// dice are the random numbers of a step, from 0 to 999.
type dice [5]int

// fate returns what happens to the message of a step.
func (d dice) fate() int { return d[4] % 100 }

// step is an action with its random numbers. A step is valid in any state, even if it does nothing
// there, so that steps can be removed from a sequence.
type step struct {
	action string
	d      dice
}

func (s step) String() string {
	return fmt.Sprintf("%s:%d,%d,%d,%d,%d", s.action, s.d[0], s.d[1], s.d[2], s.d[3], s.d[4])
}

// models has every model by name. A line of testdata begins with such a name.
var models = map[string]func(*world) model{}

// draw generates a sequence from a seed.
func draw(actions []modelAction, seed uint64) []step {
	random := rand.New(rand.NewPCG(seed, 0))
	all := 0
	for _, a := range actions {
		all += a.weight
	}
	steps := make([]step, 10+random.IntN(70))
	for i := range steps {
		at := random.IntN(all)
		for _, a := range actions {
			if at -= a.weight; at < 0 {
				steps[i].action = a.name
				break
			}
		}
		for j := range steps[i].d {
			steps[i].d[j] = random.IntN(1000)
		}
	}
	return steps
}

// play runs a sequence. It returns why the sequence failed, or "", and how many steps it ran.
func (w *world) play(build func(*world) model, steps []step) (why string, played int) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case violation:
			why = v.text
		default:
			panic(v)
		}
	}()
	w.begin()
	m := build(w)
	do := map[string]func(dice){}
	for _, a := range m.actions() {
		do[a.name] = a.do
	}
	for i, s := range steps {
		played = i + 1
		if do[s.action] == nil {
			w.fail("there is no action %q", s.action)
		}
		do[s.action](s.d)
		m.check()
	}
	w.steady = true
	m.finish()
	return "", played
}

// shrink removes from a failing sequence whatever the failure does not need.
func (w *world) shrink(build func(*world) model, steps []step) []step {
	end := time.Now().Add(20 * time.Second)
	fails := func(steps []step) bool {
		why, _ := w.play(build, steps)
		return why != "" && time.Now().Before(end)
	}
	for size := len(steps) / 2; size > 0; {
		shorter := false
		for at := 0; at+size <= len(steps); {
			without := slices.Concat(steps[:at], steps[at+size:])
			if fails(without) {
				steps, shorter = without, true
			} else {
				at += size
			}
		}
		if !shorter || size > 1 {
			size /= 2
		}
	}
	for i := range steps {
		for j := range steps[i].d {
			plain := slices.Clone(steps)
			plain[i].d[j] = 0
			if fails(plain) {
				steps = plain
			}
		}
	}
	return steps
}

// try plays a sequence, and reports a failure in a readable form.
func (w *world) try(t *testing.T, name, from string, steps []step) (ok bool) {
	t.Helper()
	build := models[name]
	why, played := w.play(build, steps)
	if why == "" {
		return true
	}
	steps = w.shrink(build, steps[:played])
	shortest, _ := w.play(build, steps)
	var line strings.Builder
	line.WriteString(name)
	for _, s := range steps {
		line.WriteString(" " + s.String())
	}
	t.Errorf("%s on %s, %s: %s\nThe shortest sequence found (%s):\n%s\nLATCHKEY_TEST_MODEL_REPLAY=%q",
		name, w.Name, from, why, shortest, strings.Join(w.story(), "\n"), line.String())
	return false
}

// story returns the log, without the middle if it is long.
func (w *world) story() []string {
	if len(w.log) < 60 {
		return w.log
	}
	return slices.Concat(w.log[:30], []string{"…"}, w.log[len(w.log)-20:])
}

// parseSequence reads the line that a failure has printed.
func parseSequence(t *testing.T, line string) (name string, steps []step) {
	t.Helper()
	words := strings.Fields(line)
	require.NotEmpty(t, words)
	for _, word := range words[1:] {
		var s step
		action, numbers, _ := strings.Cut(word, ":")
		s.action = action
		for i, n := range strings.SplitN(numbers, ",", len(s.d)) {
			var err error
			s.d[i], err = strconv.Atoi(n)
			require.NoError(t, err, word)
		}
		steps = append(steps, s)
	}
	require.Contains(t, models, words[0])
	return words[0], steps
}

// keptSequences returns the sequences that have found a defect: file and line.
func keptSequences(t *testing.T) (kept [][2]string) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				kept = append(kept, [2]string{filepath.Base(file), line})
			}
		}
	}
	return kept
}

func modelBudget(t *testing.T) time.Duration {
	t.Helper()
	if text := os.Getenv("LATCHKEY_TEST_MODEL_TIME"); text != "" {
		budget, err := time.ParseDuration(text)
		require.NoError(t, err, "LATCHKEY_TEST_MODEL_TIME")
		return budget
	}
	if testing.Short() {
		return 3 * time.Second
	}
	return 30 * time.Second
}

func modelSeed(t *testing.T) uint64 {
	t.Helper()
	if text := os.Getenv("LATCHKEY_TEST_MODEL_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		require.NoError(t, err, "LATCHKEY_TEST_MODEL_SEED")
		return seed
	}
	return rand.Uint64N(1 << 40)
}

func TestModel(t *testing.T) {
	budget, seed := modelBudget(t), modelSeed(t)
	t.Run("server", func(t *testing.T) {
		s, without := testredis.Real(t)
		if s == nil {
			t.Skip(without)
		}
		runModels(t, s, budget*4/5, seed)
	})
	t.Run("embedded", func(t *testing.T) {
		runModels(t, testredis.Embedded(t), budget/5, seed)
	})
}

// runModels runs the kept sequences, and then as many new ones as the time allows.
func runModels(t *testing.T, s *testredis.Clocked, budget time.Duration, seed uint64) {
	t.Helper()
	w := newWorld(t, s)
	if line := os.Getenv("LATCHKEY_TEST_MODEL_REPLAY"); line != "" {
		name, steps := parseSequence(t, line)
		if w.try(t, name, "replayed", steps) {
			t.Logf("it does not fail:\n%s", strings.Join(w.story(), "\n"))
		}
		return
	}
	for _, kept := range keptSequences(t) {
		name, steps := parseSequence(t, kept[1])
		w.try(t, name, kept[0], steps)
	}
	for name := range models {
		t.Run(name, func(t *testing.T) { runModel(t, w, name, budget/time.Duration(len(models)), seed) })
	}
}

// runModel runs sequences of one model until its time is over.
func runModel(t *testing.T, w *world, name string, budget time.Duration, seed uint64) {
	t.Helper()
	end := time.Now().Add(budget)
	w.begin()
	actions := models[name](w).actions()
	count, steps := 0, 0
	for ; time.Now().Before(end); count++ {
		sequence := draw(actions, seed+uint64(count))
		steps += len(sequence)
		if !w.try(t, name, fmt.Sprintf("LATCHKEY_TEST_MODEL_SEED=%d", seed+uint64(count)), sequence) {
			break
		}
	}
	t.Logf("%d sequences of %d steps, from seed %d", count, steps, seed)
}
