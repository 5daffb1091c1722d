package rig

import (
	"context"
	"crypto/tls"
	"net"
	"strconv"

	"github.com/redis/rueidis"
)

// A client that learns the addresses of servers from other servers bypasses a proxy, unless these
// addresses are mapped to those of the proxy. A proxy in front of a topology therefore listens once
// for each data node, on one port and on hosts that count up from 127.0.0.1. So any process can
// derive the mapping from the address of the proxy alone. Linux has all these hosts.

// Route returns a function that maps an address that a server has named to the address to dial, if
// clients go through the proxy at addr. It is nil if there is nothing to map.
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

// routed makes a client dial through a route.
func routed(option *rueidis.ClientOption, route func(string) string) {
	option.DialCtxFn = func(ctx context.Context, address string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
		if config != nil {
			return (&tls.Dialer{NetDialer: dialer, Config: config}).DialContext(ctx, "tcp", route(address))
		}
		return dialer.DialContext(ctx, "tcp", route(address))
	}
}

// ends returns the addresses of the servers behind a proxy.
func (s *Server) ends() []string {
	if len(s.nodes) > 0 {
		return s.nodes
	}
	return []string{s.Addr()}
}

// proxyAddrs returns addresses on which a proxy can listen, one for each end.
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
