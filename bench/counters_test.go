package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

const info = "# Memory\r\nused_memory:1000\r\nconnected_clients:3\r\nused_cpu_sys:0.5\r\nused_cpu_user:1.5\r\n" +
	"cmdstat_evalsha:calls=10,usec=20\r\ncmdstat_set:calls=5,usec=1\r\ncmdstat_client|id:calls=2,usec=1\r\ncmdstat_ping:calls=7,usec=1\r\n"

// Redis counts the calls of scripts in the same figures, so only commands that scripts do not call
// count.
func TestCommandsOfScriptsDoNotCount(t *testing.T) {
	t.Parallel()
	now := time.Now()
	c := parseInfo(info, sent, now)
	assert.Equal(t, counters{at: now, commands: 12, cpu: 2, memory: 1000, connections: 3}, c)
	c = parseInfo(info, append([]string{"set"}, sent...), now)
	assert.InDelta(t, 17, c.commands, 0)
}

func TestCostIsOfOneGrant(t *testing.T) {
	t.Parallel()
	now := time.Now()
	m := cost(counters{at: now, commands: 10, cpu: 1}, counters{at: now.Add(2 * time.Second), commands: 50, cpu: 2}, 20)
	assert.InDelta(t, 2, m["commands/grant"], 0)
	assert.InDelta(t, 20, m["commands/s"], 0)
	assert.InDelta(t, 50, m["server CPU %"], 1e-9)
	assert.InDelta(t, 50_000, m["server µs/grant"], 1e-6)
}
