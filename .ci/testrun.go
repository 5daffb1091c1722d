//go:build ignore

// Testrun runs "go test" with its own arguments and prints only the output that
// matters. It ends with a summary: the backend of the integration tests, the
// skipped tests with their reasons, and the counts. test.sh starts it.
//
// With LATCHKEY_TEST_NOSKIP=1 a skipped test fails the run. LATCHKEY_TEST_SLOWEST=n also lists the n slowest tests
// among those that do not run in parallel, and the total time of these.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// event is one line of "go test -json".
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
	Elapsed float64
}

// backendPrefix begins the line in which the rig of tests/ names its backend.
const backendPrefix = "rig: backend "

var onPort = regexp.MustCompile(` on port \d+`)

type summary struct {
	verbose bool

	output map[string][]string // by package and test, until its result is known
	broken map[string]bool     // packages with a failed test

	passed, failed int
	failures       []string
	skipped        []string            // reasons, in order of appearance
	skips          map[string][]string // tests by reason
	backends       []string

	paused map[string]bool    // tests that run in parallel, by package and name
	took   map[string]float64 // seconds that the other tests took
}

func main() {
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	s := &summary{
		verbose: slices.Contains(args, "-v") || slices.Contains(args, "-v=true"),
		output:  map[string][]string{},
		broken:  map[string]bool{},
		skips:   map[string][]string{},
		paused:  map[string]bool{},
		took:    map[string]float64{},
	}
	// An interrupt also reaches go test. This process keeps running to print the summary.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)

	command := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	command.Stderr = os.Stderr
	stdout, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "test.sh:", err)
		return 1
	}
	s.read(stdout)
	err = command.Wait()
	s.print()

	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return exit.ExitCode()
	case err != nil:
		fmt.Fprintln(os.Stderr, "test.sh: go test:", err)
		return 1
	case os.Getenv("LATCHKEY_TEST_NOSKIP") == "1" && len(s.skipped) > 0:
		fmt.Println("FAIL: nothing may be skipped in this run")
		return 1
	}
	return 0
}

func (s *summary) read(r io.Reader) {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		var e event
		if line != "" && json.Unmarshal([]byte(line), &e) == nil {
			s.take(e)
		} else {
			fmt.Print(line)
		}
		if err != nil {
			return
		}
	}
}

func (s *summary) take(e event) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "build-output":
		fmt.Print(e.Output)
	case "output":
		s.takeOutput(key, e)
	case "pause":
		s.paused[key] = true
	case "pass":
		if e.Test != "" && !strings.Contains(e.Test, "/") {
			s.passed++
			if !s.paused[key] {
				s.took[key] = e.Elapsed
			}
		}
		delete(s.output, key)
	case "skip":
		if e.Test != "" {
			s.takeSkip(e, s.output[key])
		}
		delete(s.output, key)
	case "fail":
		s.takeFail(key, e)
	}
}

func (s *summary) takeOutput(key string, e event) {
	if text, found := strings.CutPrefix(e.Output, backendPrefix); found {
		// Each package has a server of its own: lines that differ only in the port are one.
		text = onPort.ReplaceAllString(strings.TrimSpace(text), "")
		if !slices.Contains(s.backends, text) {
			s.backends = append(s.backends, text)
		}
	}
	switch {
	case s.verbose:
		fmt.Print(e.Output)
	case e.Test != "":
		s.output[key] = append(s.output[key], e.Output)
	case !strings.HasPrefix(e.Output, "?   ") && e.Output != "PASS\n":
		fmt.Print(e.Output)
	}
	if s.verbose && e.Test != "" { // for the reason of a skip
		s.output[key] = append(s.output[key], e.Output)
	}
}

// takeSkip takes the reason from the output of the test: everything but the lines
// of the testing package.
func (s *summary) takeSkip(e event, output []string) {
	var words []string
	for _, line := range output {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "=== ") || strings.HasPrefix(line, "--- ") {
			continue
		}
		if file, text, found := strings.Cut(line, ": "); found && strings.Contains(file, ".go:") {
			line = text
		}
		words = append(words, line)
	}
	reason := strings.Join(words, " ")
	if reason == "" {
		reason = "no reason given"
	}
	if s.skips[reason] == nil {
		s.skipped = append(s.skipped, reason)
	}
	s.skips[reason] = append(s.skips[reason], e.Test)
}

func (s *summary) takeFail(key string, e event) {
	if e.Test != "" {
		s.broken[e.Package] = true
		if !strings.Contains(e.Test, "/") {
			s.failed++
			s.failures = append(s.failures, e.Package+" "+e.Test)
		}
		s.flush(key)
		return
	}
	// A package that died (a panic, a timeout) leaves tests without a result.
	for key := range s.output {
		if strings.HasPrefix(key, e.Package+" ") {
			s.flush(key)
		}
	}
	if !s.broken[e.Package] {
		s.failed++
		s.failures = append(s.failures, e.Package)
	}
}

func (s *summary) flush(key string) {
	if !s.verbose {
		fmt.Print(strings.Join(s.output[key], ""))
	}
	delete(s.output, key)
}

func (s *summary) print() {
	fmt.Println()
	for _, backend := range s.backends {
		fmt.Println("backend:", backend)
	}
	if len(s.backends) == 0 {
		fmt.Println("backend: none, no integration test was run")
	}
	count := 0
	for _, reason := range s.skipped {
		count += len(s.skips[reason])
	}
	if count > 0 {
		fmt.Printf("skipped: %d\n", count)
	}
	for _, reason := range s.skipped {
		fmt.Printf("  %s: %s\n", reason, strings.Join(s.skips[reason], ", "))
	}
	for _, failure := range s.failures {
		fmt.Println("failed:", failure)
	}
	fmt.Printf("%d passed, %d failed, %d skipped\n", s.passed, s.failed, count)
	if n, err := strconv.Atoi(os.Getenv("LATCHKEY_TEST_SLOWEST")); err == nil {
		s.printSlowest(n)
	}
}

func (s *summary) printSlowest(n int) {
	total := 0.0
	for _, seconds := range s.took {
		total += seconds
	}
	fmt.Printf("one after the other: %d tests, %.0f s\n", len(s.took), total)
	slowest := slices.SortedFunc(maps.Keys(s.took), func(a, b string) int { return cmp.Compare(s.took[b], s.took[a]) })
	for _, key := range slowest[:min(n, len(slowest))] {
		fmt.Printf("  %5.1f s  %s\n", s.took[key], key)
	}
}
