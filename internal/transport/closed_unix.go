//go:build unix

package transport

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"syscall"
)

// closedByPeer returns the error that a Read would return now, or nil if it would wait or return
// something, or if that cannot be found out. It takes nothing.
func closedByPeer(conn net.Conn) (closed error) {
	if secure, is := conn.(*tls.Conn); is {
		conn = secure.NetConn()
	}
	socket, is := conn.(syscall.Conn)
	if !is {
		return nil
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	// Control, because Read would wait for whoever reads.
	err = raw.Control(func(fd uintptr) {
		var one [1]byte
		switch n, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK); {
		case err == nil && n == 0:
			closed = io.EOF
		case err != nil && !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, syscall.EINTR):
			closed = err
		}
	})
	return errors.Join(err, closed)
}
