package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// The page has the metrics of the program.
func TestPageHasTheMetrics(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, listener) }()
	missing := []string{
		`latchkey_wait_duration_seconds_count{latchkey_kind="lock",latchkey_outcome="acquired"`,
		`latchkey_wait_duration_seconds_count{latchkey_kind="lock",latchkey_outcome="not_acquired"`,
		`latchkey_hold_duration_seconds_bucket{latchkey_kind="lock",latchkey_outcome="released"`,
		`latchkey_losses_total{latchkey_kind="lock",latchkey_outcome="lost"`,
		`latchkey_holds{latchkey_kind="lock"`,
		`latchkey_attempts_total{latchkey_kind="lock",latchkey_outcome="acquired"`,
		`latchkey_permits_acquired_total{latchkey_kind="semaphore"`,
		`latchkey_calls_waiting{latchkey_kind="lock"`,
		`latchkey_permits_limit{latchkey_kind="semaphore",latchkey_name="pool"`,
	}
	for deadline := time.Now().Add(30 * time.Second); len(missing) > 0; {
		text := page(t, "http://"+listener.Addr().String()+"/metrics")
		for len(missing) > 0 && strings.Contains(text, missing[0]) {
			missing = missing[1:]
		}
		if time.Now().After(deadline) {
			t.Fatalf("there is no %s in\n%s", missing[0], text)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func page(t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
