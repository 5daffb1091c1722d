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
// It knows bytes, not commands; for those see [Tap]. To a topology it is the links to
// all data nodes; what happens to it happens to all of them.
type Link struct {
	tb      testing.TB
	proxies []*toxiproxy.Proxy // one for each end of the server
	toxics  []string
}

// NewLink puts a link in front of the server, removed at the end of the test.
func NewLink(tb testing.TB, server *Server) *Link {
	tb.Helper()
	l := &Link{tb: tb}
	var err error
	for range startTries {
		if err = l.start(server); err == nil {
			tb.Cleanup(l.Cut)
			return l
		}
		l.Cut()
	}
	tb.Fatalf("rig: link: %v", err)
	return nil
}

func (l *Link) start(server *Server) error {
	addrs, err := server.proxyAddrs()
	if err != nil {
		return err
	}
	l.proxies = nil
	api := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), zerolog.Nop())
	for i, end := range server.ends() {
		proxy := toxiproxy.NewProxy(api, "link", addrs[i], end)
		if err := proxy.Start(); err != nil {
			return err
		}
		l.proxies = append(l.proxies, proxy)
	}
	return nil
}

// Addr is where a client connects to go through the link.
func (l *Link) Addr() string { return l.proxies[0].Listen }

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
		for _, proxy := range l.proxies {
			if err := proxy.Toxics.RemoveToxic(context.Background(), name); err != nil {
				l.tb.Errorf("rig: link: %v", err)
			}
		}
	}
	l.toxics = nil
}

// Cut closes all connections and refuses new ones, as a server that is down.
func (l *Link) Cut() {
	for _, proxy := range l.proxies {
		proxy.Stop()
	}
}

// Mend ends a Cut.
func (l *Link) Mend() {
	l.tb.Helper()
	for _, proxy := range l.proxies {
		if err := proxy.Start(); err != nil {
			l.tb.Fatalf("rig: link: %v", err)
		}
	}
}

func (l *Link) add(kind, stream, attributes string) {
	l.tb.Helper()
	name := kind + "-" + stream
	body := fmt.Sprintf(`{"name":%q,"type":%q,"stream":%q,"attributes":%s}`, name, kind, stream, attributes)
	for _, proxy := range l.proxies {
		if _, err := proxy.Toxics.AddToxicJson(strings.NewReader(body)); err != nil {
			l.tb.Fatalf("rig: link: %v", err)
		}
	}
	l.toxics = append(l.toxics, name)
}
