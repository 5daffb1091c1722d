package main

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Names of peers that do not exist, for the child processes of tests.
const (
	panics = "panics"
	hangs  = "hangs"
)

func TestMain(m *testing.M) {
	if text := os.Getenv(orderVariable); text != "" {
		var o order
		if err := json.Unmarshal([]byte(text), &o); err != nil {
			panic(err)
		}
		switch o.Peer {
		case panics:
			panic("broken peer")
		case hangs:
			select {}
		}
		child(text)
	}
	os.Exit(m.Run())
}

func TestLinksAreRoundTrips(t *testing.T) {
	t.Parallel()
	links, err := parseLinks("0,2ms")
	require.NoError(t, err)
	assert.Equal(t, []time.Duration{0, 2 * time.Millisecond}, links)
	for _, bad := range []string{"", "2", "-1ms", "0,,2ms"} {
		_, err := parseLinks(bad)
		assert.Error(t, err, bad)
	}
}

func TestNamesAreMatched(t *testing.T) {
	t.Parallel()
	assert.True(t, matches("*", "floor"))
	assert.True(t, matches("floor,latchkey*", "latchkey-mutex"))
	assert.False(t, matches("floor,latchkey", "latchkey-mutex"))
	assert.False(t, matches("", "floor"))
}

func TestFlagsThatSelectNothingAreRefused(t *testing.T) {
	t.Parallel()
	_, err := parseFlags([]string{"-only", "nothing"})
	assert.Error(t, err)
	_, err = parseFlags([]string{"-reps", "0"})
	assert.Error(t, err)
}
