package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/redis/rueidis"
)

// A stopwatch reads from the slow log of the server how long its scripts take. The times do not
// include the network and the client.
type stopwatch struct {
	env   *env
	times map[string][]float64 // of each operation, in µs
}

// slowlogLength is larger than the number of entries that one operation adds to the slow log.
const slowlogLength = "100000"

// newStopwatch makes the server log each command. The server does so until it ends.
func newStopwatch(e *env) (*stopwatch, error) {
	set := e.server.B().ConfigSet().ParameterValue().
		ParameterValue("slowlog-log-slower-than", "0").ParameterValue("slowlog-max-len", slowlogLength).Build()
	return &stopwatch{env: e, times: map[string][]float64{}}, e.server.Do(e.ctx, set).Error()
}

// time records the total time of the scripts of an operation. Scripts of other clients in that time
// count too, so only the median of many times is meaningful.
func (s *stopwatch) time(operation string, do func() error) error {
	scripts, err := s.scripts(do)
	if err != nil {
		return fmt.Errorf("%s: %w", operation, err)
	}
	var took time.Duration
	for _, script := range scripts {
		took += script.took
	}
	s.times[operation] = append(s.times[operation], micros(took))
	return nil
}

// An execution is one execution of a script.
type execution struct {
	took time.Duration
	keys int64
}

// scripts returns the scripts that the server executes while do runs.
func (s *stopwatch) scripts(do func() error) ([]execution, error) {
	server := s.env.server
	if err := server.Do(s.env.ctx, server.B().SlowlogReset().Build()).Error(); err != nil {
		return nil, err
	}
	if err := do(); err != nil {
		return nil, err
	}
	entries, err := server.Do(s.env.ctx, server.B().Arbitrary("SLOWLOG", "GET", slowlogLength).Build()).ToArray()
	if err != nil {
		return nil, err
	}
	var all []execution
	for _, entry := range entries {
		one, is, err := parseSlowlog(entry)
		if err != nil {
			return nil, err
		}
		if is {
			all = append(all, one)
		}
	}
	return all, nil
}

// parseSlowlog reads an entry of the slow log: an id, the time, the duration, the words of the
// command, and more. It reports whether the command is a script.
func parseSlowlog(entry rueidis.RedisMessage) (execution, bool, error) {
	fields, err := entry.ToArray()
	if err != nil {
		return execution{}, false, err
	}
	words, err := fields[3].AsStrSlice()
	if err != nil || !slices.Contains([]string{"EVAL", "EVALSHA"}, words[0]) {
		return execution{}, false, err
	}
	took, err := fields[2].AsInt64()
	return execution{time.Duration(took) * time.Microsecond, int64(number(words[2]))}, true, err
}

// medians returns the median time of each operation.
func (s *stopwatch) medians() Metrics {
	m := Metrics{}
	for operation, times := range s.times {
		m[operation] = median(times)
	}
	return m
}
