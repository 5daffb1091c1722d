package main

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestPanicOfAPeerIsItsResult(t *testing.T) {
	t.Parallel()
	r := measure(t.Context(), order{Peer: panics}, time.Minute)
	assert.Contains(t, r.Error, "broken peer")
}

func TestHangOfAPeerIsItsResult(t *testing.T) {
	t.Parallel()
	r := measure(t.Context(), order{Peer: hangs}, 100*time.Millisecond)
	assert.Contains(t, r.Error, "killed")
}

func TestUnknownPeerIsAnError(t *testing.T) {
	t.Parallel()
	r := measure(t.Context(), order{Peer: "unknown"}, time.Minute)
	assert.Contains(t, r.Error, "unknown")
}

func TestResultIsTheLastLine(t *testing.T) {
	t.Parallel()
	r := parseResult([]byte("a library logs\n{\"Metrics\":{\"grants/s\":2}}\n"), nil, "")
	assert.Equal(t, result{Metrics: Metrics{"grants/s": 2}}, r)
	r = parseResult([]byte("a library logs\n"), errors.New("exit status 2"), "panic: why\n\ngoroutine 1")
	assert.Contains(t, r.Error, "panic: why")
	assert.Contains(t, r.Error, "exit status 2")
	assert.NotContains(t, r.Error, "goroutine")
}
