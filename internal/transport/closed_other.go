//go:build !unix

package transport

import "net"

// closedByPeer cannot find out here whether the peer has closed the connection.
func closedByPeer(net.Conn) error { return nil }
