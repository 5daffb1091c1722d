package latchkey

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// scripted is a server that answers as the test says: answer gets the words of a command,
// in capitals, and an empty reply closes the connection.
func scripted(t *testing.T, answer func(command string) string) (addr string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serveScripted(conn, answer)
		}
	}()
	return listener.Addr().String()
}

func serveScripted(conn net.Conn, answer func(string) string) {
	defer func() { _ = conn.Close() }()
	for in := bufio.NewReader(conn); ; {
		var words []string
		var n, size int
		if _, err := fmt.Fscanf(in, "*%d\r\n", &n); err != nil {
			return
		}
		for range n {
			if _, err := fmt.Fscanf(in, "$%d\r\n", &size); err != nil {
				return
			}
			word := make([]byte, size+2)
			if _, err := io.ReadFull(in, word); err != nil {
				return
			}
			words = append(words, strings.ToUpper(string(word[:size])))
		}
		reply := answer(strings.Join(words, " "))
		if reply == "" {
			return
		}
		if _, err := io.WriteString(conn, reply); err != nil {
			return
		}
	}
}

const helloReply = "%2\r\n$6\r\nserver\r\n$5\r\nredis\r\n$5\r\nproto\r\n:3\r\n"

// A server that does not say what it is, because it is in trouble, is not taken for one
// without a cluster: in a cluster that would lose every key that another node has.
func TestConnect_does_not_guess_whether_there_is_a_cluster(t *testing.T) {
	for name, trouble := range map[string]string{"loading": "-LOADING later\r\n", "cut": ""} {
		t.Run(name, func(t *testing.T) {
			addr := scripted(t, func(command string) string {
				switch {
				case strings.HasPrefix(command, "HELLO 3"):
					return helloReply
				case command == "HELLO", command == "CLUSTER INFO":
					return trouble
				}
				return "+OK\r\n"
			})
			c, err := Connect(context.Background(), "redis://"+addr, Options{})
			if err == nil {
				_ = c.Close(context.Background())
			}
			require.Error(t, err)
		})
	}
}

// One that refuses both questions is a server without a cluster, and one that refuses
// only the first may be in one.
func TestConnect_asks_in_another_way_where_HELLO_is_refused(t *testing.T) {
	addr := scripted(t, func(command string) string {
		switch {
		case strings.HasPrefix(command, "HELLO 3"):
			return helloReply
		case command == "HELLO", command == "CLUSTER INFO":
			return "-ERR unknown command\r\n"
		}
		return "+OK\r\n"
	})
	c, err := Connect(context.Background(), "redis://"+addr, Options{})
	require.NoError(t, err)
	require.False(t, c.cluster)
	require.NoError(t, c.Close(context.Background()))
}
