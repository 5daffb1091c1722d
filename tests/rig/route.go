package rig

import (
	"context"
	"crypto/tls"
	"net"
	"strconv"

	"github.com/redis/rueidis"
)

// A client that learns the addresses of servers from other servers goes round a proxy,
// unless these addresses are mapped to those of the proxy. A proxy in front of a
// topology therefore listens once for each data node, at one port and hosts that count
// up from 127.0.0.1, so that any process can work out the mapping from the address
// of the proxy alone. Linux has all these hosts.

// Route tells which address to dial for one that a server has named, by the way
// through addr, which is a proxy. It is nil if nothing is to be mapped.
func (s *Server) Route(addr string) func(address string) string {
	_, port, err := net.SplitHostPort(addr)
	if len(s.nodes) == 0 || addr == s.Addr() || err != nil {
		return nil
	}
	return func(address string) string {
		for i, node := range s.nodes {
			if node == address {
				return net.JoinHostPort(proxyHost(i), port)
			}
		}
		return address
	}
}

func proxyHost(i int) string { return "127.0.0." + strconv.Itoa(i+1) }

// routed has a client dial by a route.
func routed(option *rueidis.ClientOption, route func(string) string) {
	option.DialCtxFn = func(ctx context.Context, address string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
		if config != nil {
			return (&tls.Dialer{NetDialer: dialer, Config: config}).DialContext(ctx, "tcp", route(address))
		}
		return dialer.DialContext(ctx, "tcp", route(address))
	}
}

// ends are the addresses of the servers that stand behind a proxy.
func (s *Server) ends() []string {
	if len(s.nodes) > 0 {
		return s.nodes
	}
	return []string{s.Addr()}
}

// proxyAddrs returns addresses at which a proxy can listen, one for each end.
func (s *Server) proxyAddrs() ([]string, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	var addrs []string
	for i := range s.ends() {
		addrs = append(addrs, net.JoinHostPort(proxyHost(i), strconv.Itoa(port)))
	}
	return addrs, nil
}
