package testredis

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/engine/connect"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/owners"
	"github.com/latchkey-go/latchkey/internal/engine/report"
	"github.com/latchkey-go/latchkey/internal/primitive/admin"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// Settings are those of an engine.
type Settings struct {
	core.Config

	Logger *slog.Logger
}

// NewSettings returns the settings that a client has without options.
func NewSettings() Settings {
	return Settings{
		Config: core.Config{
			Lease: 30 * time.Second, StaleWaiterTimeout: 5 * time.Second, RedissonFairWait: 5 * time.Minute,
			PollCeiling: 2 * time.Second, RetryBudget: 3 * time.Second, Turn: 10 * time.Millisecond, MaxInFlight: 512,
			Label:        "test",
			Confirmation: func(string, int) *transport.Replication { return nil },
		},
		Logger: slog.Default(),
	}
}

// URL returns the address of the server that LATCHKEY_TEST_REDIS names, or of an embedded one.
func URL(t testing.TB) string {
	t.Helper()
	if url := os.Getenv("LATCHKEY_TEST_REDIS"); url != "" {
		return url
	}
	return Run(t).URL()
}

// NewEngine returns the inside of a client of the server at URL. The functions change its settings.
func NewEngine(t testing.TB, changes ...func(*Settings)) *core.Parts {
	t.Helper()
	return NewEngineOf(t, URL(t), changes...)
}

// NewEngineOf is NewEngine for another server.
func NewEngineOf(t testing.TB, url string, changes ...func(*Settings)) *core.Parts {
	t.Helper()
	s := NewSettings()
	for _, change := range changes {
		change(&s)
	}
	options, err := connect.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	client, topology, err := connect.Connect(context.Background(), options,
		connect.Config{Name: url, Label: s.Label, MaxInFlight: s.MaxInFlight})
	if err != nil {
		t.Fatal(err)
	}
	c, err := core.New(client, s.Config, report.New(s.Logger, nil), topology)
	if err != nil {
		client.Close()
		t.Fatal(err)
	}
	admin.RegisterGrants(c)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := owners.Close(ctx, c); err != nil {
			t.Error(err)
		}
	})
	return c
}

// UniqueName keeps tests that share a server apart.
func UniqueName(t testing.TB, c *core.Parts) string {
	t.Helper()
	return t.Name() + ":" + c.ID
}
