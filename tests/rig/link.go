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

// Link is a network link to a server that can be slowed down, silenced and cut. It handles bytes,
// not commands; for those see [Tap]. In front of a topology it is the links to all data nodes, and
// every call applies to all of them.
type Link struct {
	tb      place
	proxies []*toxiproxy.Proxy // one for each end of the server
	toxics  []string
}

// NewLink puts a link in front of the server, removed at the end of the test.
func NewLink(tb testing.TB, server *Server) *Link {
	tb.Helper()
	l := &Link{tb: here(tb)}
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

// Addr returns the address at which clients connect through the link.
func (l *Link) Addr() string { return l.proxies[0].Listen }

// DelayReplies delays everything that the server sends by d.
func (l *Link) DelayReplies(d time.Duration) { l.tb.Helper(); l.delay("downstream", d) }

// DelayRequests delays everything that the clients send by d.
func (l *Link) DelayRequests(d time.Duration) { l.tb.Helper(); l.delay("upstream", d) }

func (l *Link) delay(stream string, d time.Duration) {
	l.tb.Helper()
	l.add("latency", stream, fmt.Sprintf(`{"latency":%d}`, d.Milliseconds()))
}

// Silence keeps all connections open, including new ones, but moves no byte over them in either
// direction.
func (l *Link) Silence() {
	l.tb.Helper()
	l.add("timeout", "upstream", `{"timeout":0}`)
	l.add("timeout", "downstream", `{"timeout":0}`)
}

// SilenceReplies lets requests through, but no replies.
func (l *Link) SilenceReplies() {
	l.tb.Helper()
	l.add("timeout", "downstream", `{"timeout":0}`)
}

// Heal removes all disturbances. It closes connections that were silenced, and delivers delayed
// data.
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

// Cut closes all connections and refuses new ones, like a server that is down.
func (l *Link) Cut() {
	for _, proxy := range l.proxies {
		proxy.Stop()
	}
}

// Restore ends a Cut.
func (l *Link) Restore() {
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
