package rig

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

// Link is a network link to a server that can be slowed down, silenced and cut.
// It knows bytes, not commands; for those see [Tap].
type Link struct {
	tb     testing.TB
	server *Server
	proxy  *toxiproxy.Proxy
	toxics []string
}

// NewLink puts a link in front of the server, removed at the end of the test.
func NewLink(tb testing.TB, server *Server) *Link {
	tb.Helper()
	api := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), zerolog.Nop())
	proxy := toxiproxy.NewProxy(api, "link", "127.0.0.1:0", server.Addr())
	if err := proxy.Start(); err != nil {
		tb.Fatalf("rig: link: %v", err)
	}
	tb.Cleanup(proxy.Stop)
	return &Link{tb: tb, server: server, proxy: proxy}
}

// Addr is where a client connects to go through the link.
func (l *Link) Addr() string { return l.proxy.Listen }

// URL is the server's URL by way of the link.
func (l *Link) URL() string { return l.server.URLVia(l.Addr()) }

// DelayReplies lets everything that the server sends arrive later by d.
func (l *Link) DelayReplies(d time.Duration) { l.tb.Helper(); l.delay("downstream", d) }

// DelayRequests lets everything that the clients send arrive later by d.
func (l *Link) DelayRequests(d time.Duration) { l.tb.Helper(); l.delay("upstream", d) }

func (l *Link) delay(stream string, d time.Duration) {
	l.tb.Helper()
	l.add("latency", stream, fmt.Sprintf(`{"latency":%d}`, d.Milliseconds()))
}

// Silence keeps all connections open, also new ones, and moves no byte over
// them in either direction.
func (l *Link) Silence() {
	l.tb.Helper()
	l.add("timeout", "upstream", `{"timeout":0}`)
	l.add("timeout", "downstream", `{"timeout":0}`)
}

// SilenceReplies lets requests through and no answers.
func (l *Link) SilenceReplies() {
	l.tb.Helper()
	l.add("timeout", "downstream", `{"timeout":0}`)
}

// Heal takes all disturbances away. Connections that were silenced are closed by
// it; what was delayed arrives.
func (l *Link) Heal() {
	l.tb.Helper()
	for _, name := range l.toxics {
		if err := l.proxy.Toxics.RemoveToxic(context.Background(), name); err != nil {
			l.tb.Errorf("rig: link: %v", err)
		}
	}
	l.toxics = nil
}

// Cut closes all connections and refuses new ones, as a server that is down.
func (l *Link) Cut() { l.proxy.Stop() }

// Mend ends a Cut.
func (l *Link) Mend() {
	l.tb.Helper()
	if err := l.proxy.Start(); err != nil {
		l.tb.Fatalf("rig: link: %v", err)
	}
}

func (l *Link) add(kind, stream, attributes string) {
	l.tb.Helper()
	name := kind + "-" + stream
	body := fmt.Sprintf(`{"name":%q,"type":%q,"stream":%q,"attributes":%s}`, name, kind, stream, attributes)
	if _, err := l.proxy.Toxics.AddToxicJson(strings.NewReader(body)); err != nil {
		l.tb.Fatalf("rig: link: %v", err)
	}
	l.toxics = append(l.toxics, name)
}
