package main

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// counters are the counters of the server at one time.
type counters struct {
	at          time.Time
	commands    float64 // sent by clients, without those of scripts, PING, and this program's own
	cpu         float64 // seconds
	memory      float64 // bytes
	connections float64
}

// sent has the commands that clients send and scripts do not call. Redis counts the calls of
// scripts in the same figures.
var sent = []string{
	"eval", "evalsha", "fcall", "script", "hello", "client", "select", "multi", "exec",
	"subscribe", "unsubscribe", "psubscribe", "punsubscribe", "ssubscribe", "sunsubscribe", "blpop", "wait",
}

// count reads the counters of the server. The peer's own commands count too.
func count(ctx context.Context, server rueidis.Client, p Peer) (counters, error) {
	info, err := server.Do(ctx, server.B().Info().Section("everything").Build()).ToString()
	if err != nil {
		return counters{}, err
	}
	commands := sent
	if c, ok := p.(Commander); ok {
		commands = slices.Concat(sent, c.Commands())
	}
	return parseInfo(info, commands, time.Now()), nil
}

func parseInfo(info string, commands []string, now time.Time) counters {
	c := counters{at: now}
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch name {
		case "used_memory":
			c.memory = number(value)
		case "connected_clients":
			c.connections = number(value)
		case "used_cpu_sys", "used_cpu_user":
			c.cpu += number(value)
		}
		if command, ok := strings.CutPrefix(name, "cmdstat_"); ok {
			command, _, _ = strings.Cut(command, "|") // a subcommand
			if slices.Contains(commands, command) {
				c.commands += calls(value)
			}
		}
	}
	return c
}

// calls reads the first field of calls=1,usec=2,…
func calls(value string) float64 {
	first, _, _ := strings.Cut(value, ",")
	return number(strings.TrimPrefix(first, "calls="))
}

// number returns 0 if the text is not a number.
func number(text string) float64 {
	v, _ := strconv.ParseFloat(text, 64)
	return v
}

// cost returns what the server did between two times, in total and per grant for n grants.
func cost(from, to counters, n float64) Metrics {
	seconds := to.at.Sub(from.at).Seconds()
	m := Metrics{
		"seconds":      seconds,
		"commands/s":   (to.commands - from.commands) / seconds,
		"server CPU %": 100 * (to.cpu - from.cpu) / seconds,
	}
	if n > 0 {
		m["commands/grant"] = (to.commands - from.commands) / n
		m["server µs/grant"] = 1e6 * (to.cpu - from.cpu) / n
	}
	return m
}
