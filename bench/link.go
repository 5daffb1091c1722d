package main

import (
	"context"
	"net"
	"sync"
	"time"
)

// A link forwards bytes between its clients and a server with a fixed delay. It keeps the order of
// the bytes of a connection, and any number of bytes may be in flight at once.
type link struct {
	listener net.Listener
	server   string
	delay    time.Duration // in each direction

	mu     sync.Mutex
	closed bool
	conns  []net.Conn
}

// startLink starts a link on a free port of the loopback interface. The link adds twice the delay
// to a round trip.
func startLink(ctx context.Context, server string, delay time.Duration) (*link, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &link{listener: listener, server: server, delay: delay}
	go l.accept(ctx)
	return l, nil
}

// addr returns the address to which clients connect.
func (l *link) addr() string { return l.listener.Addr().String() }

// stop closes the link and its connections.
func (l *link) stop() {
	l.listener.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, conn := range l.conns {
		conn.Close()
	}
}

func (l *link) accept(ctx context.Context) {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		var dialer net.Dialer
		server, err := dialer.DialContext(ctx, "tcp", l.server)
		if err != nil {
			client.Close()
			continue
		}
		if l.keep(client, server) {
			go join(client, server, l.delay)
		}
	}
}

// keep stores connections for stop. If the link is closed, it closes them and returns false.
func (l *link) keep(conns ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		for _, conn := range conns {
			conn.Close()
		}
		return false
	}
	l.conns = append(l.conns, conns...)
	return true
}

// A packet has the bytes of one Read.
type packet struct {
	due   time.Time
	bytes []byte
}

// join forwards in both directions until both have ended.
func join(client, server net.Conn, delay time.Duration) {
	defer client.Close()
	defer server.Close()
	var group sync.WaitGroup
	group.Go(func() { carry(client, server, delay) })
	group.Go(func() { carry(server, client, delay) })
	group.Wait()
}

// carry forwards the bytes of one connection to the other, and then its end.
func carry(from, to net.Conn, delay time.Duration) {
	packets := make(chan packet, 1<<12)
	go func() {
		defer close(packets)
		read(from, delay, packets)
	}()
	deliver(packets, to)
}

func read(from net.Conn, delay time.Duration, packets chan<- packet) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			packets <- packet{time.Now().Add(delay), append([]byte(nil), buffer[:n]...)}
		}
		if err != nil {
			return
		}
	}
}

// deliver writes each packet when it is due. It reads the channel to its end, so that the sender
// does not block forever.
func deliver(packets <-chan packet, to net.Conn) {
	var failed error
	for p := range packets {
		if failed == nil {
			time.Sleep(time.Until(p.due))
			_, failed = to.Write(p.bytes)
		}
	}
	if tcp, ok := to.(*net.TCPConn); ok {
		_ = tcp.CloseWrite() // an error means that it is already closed
	}
}
