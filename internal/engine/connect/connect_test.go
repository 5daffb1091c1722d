package connect_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/engine/core"
)

// scripted starts a server that answers as the test says: answer gets the words of a command in
// capitals, and an empty reply closes the connection. One that ends in "close" is sent first.
func scripted(t *testing.T, answer func(command string) string) (addr string) {
	t.Helper()
	return scriptedEach(t, func() func(string) string { return answer })
}

// scriptedEach is scripted with answers of its own for each connection.
func scriptedEach(t *testing.T, answers func() func(command string) string) (addr string) {
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
			go serveScripted(conn, answers())
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
		if reply == "" || reply == "cut" {
			return
		}
		text, closes := strings.CutSuffix(reply, "close")
		if _, err := io.WriteString(conn, text); err != nil || closes {
			return
		}
	}
}

const helloReply = "%2\r\n$6\r\nserver\r\n$5\r\nredis\r\n$5\r\nproto\r\n:3\r\n"

// A server that cannot say what it is, because it is in trouble, does not count as one without a
// cluster. In a cluster, every key on another node would be lost.
func TestConnect_does_not_guess_whether_there_is_a_cluster(t *testing.T) {
	t.Parallel()
	for name, trouble := range map[string]string{"loading": "-LOADING later\r\n", "proxy": "-ERR Connection timed out\r\n", "cut": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr := scripted(t, func(command string) string {
				switch {
				case strings.HasPrefix(command, "HELLO 3"):
					return helloReply
				case command == "HELLO", command == "CLUSTER INFO":
					return trouble
				}
				return "+OK\r\n"
			})
			c, err := latchkey.Connect(context.Background(), "redis://"+addr, latchkey.Options{})
			if err == nil {
				_ = c.Close(context.Background())
			}
			require.ErrorIs(t, err, latchkey.ErrUnavailable)
		})
	}
}

// A server that refuses both queries has no cluster. A server that refuses only the first may be in
// a cluster.
func TestConnect_queries_in_another_way_where_HELLO_is_refused(t *testing.T) {
	addr := scripted(t, func(command string) string {
		switch {
		case strings.HasPrefix(command, "HELLO 3"):
			return helloReply
		case command == "HELLO", command == "CLUSTER INFO":
			return "-ERR unknown command\r\n"
		}
		return "+OK\r\n"
	})
	c, err := latchkey.Connect(context.Background(), "redis://"+addr, latchkey.Options{})
	require.NoError(t, err)
	require.False(t, (*core.Handle)(c).Parts().Cluster)
	require.NoError(t, c.Close(context.Background()))
}

// lazy returns a client of a scripted server that counts the commands that are not part of
// connecting.
func lazy(t *testing.T, options latchkey.Options, answer func(command string) string) (c *latchkey.Client, commands *atomic.Int32) {
	t.Helper()
	commands = new(atomic.Int32)
	addr := scripted(t, func(command string) string {
		if reply := answer(command); reply != "" {
			return reply
		}
		switch {
		case strings.HasPrefix(command, "HELLO 3"):
			return helloReply
		case strings.HasPrefix(command, "CLIENT"), command == "PING":
			return "+OK\r\n"
		}
		commands.Add(1)
		return "+OK\r\n"
	})
	options.LazyConnect, options.RetryBudget = true, 10*time.Second
	options.Logger = slog.New(slog.DiscardHandler)
	c, err := latchkey.Connect(context.Background(), "redis://"+addr, options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close(context.Background())) })
	return c, commands
}

const clusterReply = "%1\r\n$4\r\nmode\r\n$7\r\ncluster\r\n"

// A reply that no server sends does not decide how messages travel.
func TestConnect_does_not_guess_whether_messages_are_sharded(t *testing.T) {
	t.Parallel()
	var addr string
	addr = scripted(t, func(command string) string {
		switch {
		case strings.HasPrefix(command, "HELLO 3"):
			return helloReply
		case command == "HELLO":
			return clusterReply
		case strings.HasPrefix(command, "CLUSTER S"):
			host, port, _ := net.SplitHostPort(addr)
			return fmt.Sprintf("*1\r\n*3\r\n:0\r\n:16383\r\n*3\r\n$%d\r\n%s\r\n:%s\r\n$1\r\na\r\n", len(host), host, port)
		case command == "PUBSUB SHARDNUMSUB":
			return "-ERR Connection timed out\r\n"
		}
		return "+OK\r\n"
	})
	c, err := latchkey.Connect(context.Background(), "redis://"+addr, latchkey.Options{})
	if err == nil {
		_ = c.Close(context.Background())
	}
	require.ErrorIs(t, err, latchkey.ErrUnavailable)
	require.ErrorContains(t, err, "Connection timed out")
}

// A cluster does not count as a single server: its keys are spread over many nodes.
func TestLazyConnect_sends_nothing_to_a_cluster(t *testing.T) {
	c, commands := lazy(t, latchkey.Options{}, func(command string) string {
		if command == "HELLO" {
			return clusterReply
		}
		return ""
	})
	for _, acquire := range []func() error{
		func() error { _, err := c.NewLock("x").TryLock(context.Background()); return err },
		func() error { _, err := c.NewLock("x").Lock(context.Background()); return err }, // it would wait forever
	} {
		err := acquire()
		require.ErrorIs(t, err, latchkey.ErrInvalid)
		require.NotErrorIs(t, err, latchkey.ErrUnavailable)
		require.NotErrorIs(t, err, latchkey.ErrUnknownOutcome)
		require.ErrorContains(t, err, "this server belongs to a cluster, so create its client without LazyConnect")
	}
	require.Zero(t, commands.Load())
}

// While the server does not say what it is, the client sends nothing and the call waits.
func TestLazyConnect_does_not_guess_what_the_server_is(t *testing.T) {
	for name, trouble := range map[string]string{"loading": "-LOADING later\r\n", "proxy": "-ERR Connection timed out\r\n", "cut": "cut"} {
		t.Run(name, func(t *testing.T) {
			var asked, early atomic.Int32
			c, _ := lazy(t, latchkey.Options{}, func(command string) string {
				switch {
				case command == "HELLO" && asked.Add(1) <= 3:
					return trouble
				case command == "HELLO":
					return helloReply
				case strings.HasPrefix(command, "SET ") && asked.Load() <= 3:
					early.Add(1)
				}
				return ""
			})
			h, err := c.NewMutex("x").Lock(context.Background(), latchkey.Wait(time.Minute))
			require.NoError(t, err)
			require.Zero(t, early.Load())
			_ = h.Unlock(context.Background())
		})
	}
}

// The client learns that WAIT is forbidden before it takes the first lock.
func TestLazyConnect_tries_WAIT_first(t *testing.T) {
	c, commands := lazy(t, latchkey.Options{Replicas: latchkey.Replicas{Min: 1}}, func(command string) string {
		switch {
		case command == "HELLO":
			return helloReply
		case strings.HasPrefix(command, "WAIT"):
			return "-NOPERM no permission\r\n"
		}
		return ""
	})
	_, err := c.NewLock("x").Lock(context.Background())
	require.ErrorContains(t, err, "the command WAIT, which Options.Replicas needs, fails: NOPERM")
	require.Zero(t, commands.Load())
}

// LazyConnect is refused at once where it makes no sense.
func TestLazyConnect_is_refused_for_several_nodes_and_for_New(t *testing.T) {
	_, err := latchkey.Connect(context.Background(), "redis://a:1?addr=b:1", latchkey.Options{LazyConnect: true})
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	require.ErrorContains(t, err, "there are 2 addresses and no master_set")
	c, _ := lazy(t, latchkey.Options{}, func(string) string { return "" })
	_, err = latchkey.New((*core.Handle)(c).Parts().Rueidis, latchkey.Options{LazyConnect: true})
	require.ErrorIs(t, err, latchkey.ErrInvalid)
}

// A server may end the connection of a client that it refuses, or at a command that it does not
// know. The error says after which command, and the reply of the server.
func TestConnect_says_why_the_server_closed_the_connection(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go answerAll(listener, "-ERR max number of clients reached\r\n")
	_, err = latchkey.Connect(context.Background(), "redis://user:secret@"+listener.Addr().String(), latchkey.Options{})
	require.ErrorIs(t, err, latchkey.ErrUnavailable)
	require.ErrorContains(t, err, "the server closed the connection after HELLO, with the reply ERR max number of clients reached: ")
	require.NotContains(t, err.Error(), "secret")

	closes := func(at string) string {
		return scripted(t, func(command string) string {
			switch {
			case strings.HasPrefix(command, at):
				return "cut"
			case strings.HasPrefix(command, "HELLO"):
				return helloReply
			}
			return "+OK\r\n"
		})
	}
	_, err = latchkey.Connect(context.Background(), "redis://"+closes("HELLO"), latchkey.Options{})
	require.ErrorContains(t, err, "the server closed the connection after HELLO: EOF")
	c, err := latchkey.Connect(context.Background(), "redis://"+closes("EVAL"), latchkey.Options{RetryBudget: 2 * time.Second})
	require.NoError(t, err)
	_, err = c.NewLock("x").TryLock(context.Background())
	require.ErrorIs(t, err, latchkey.ErrUnavailable)
	require.ErrorContains(t, err, "the server closed the connection after EVAL")
	_ = c.Close(context.Background())
}

// No error shows the password, even if the server repeats it, as servers do with the arguments of a
// command that they do not know.
func TestConnect_shows_no_password(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"", "?protocol=2", "?client_name=me"} {
		for _, closes := range []int{1, 2, 3, 0} {
			addr := scriptedEach(t, func() func(string) string {
				n := 0
				return func(command string) string {
					name, arguments, _ := strings.Cut(command, " ")
					reply := fmt.Sprintf("-ERR unknown command '%s', with args beginning with: '%s' \r\n", name, strings.ReplaceAll(arguments, " ", "' '"))
					if n++; n == closes {
						reply += "close"
					}
					return reply
				}
			})
			for _, user := range []string{"", "user"} {
				ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
				_, err := latchkey.Connect(ctx, "redis://"+user+":TOPSECRET@"+addr+protocol, latchkey.Options{}) // in capitals, as the server repeats it
				cancel()
				require.Error(t, err)
				require.NotContains(t, err.Error(), "TOPSECRET", "%s closes after %d", protocol, closes)
			}
		}
	}
}

// While a server has too many clients, nothing is sent, so no outcome is unknown.
func TestConnect_refused_later(t *testing.T) {
	t.Parallel()
	var full atomic.Bool
	addr := scripted(t, func(command string) string {
		switch {
		case full.Load() && strings.HasPrefix(command, "HELLO"):
			return "-ERR max number of clients reached\r\nclose"
		case full.Load():
			return "cut"
		case strings.HasPrefix(command, "HELLO"):
			return helloReply
		}
		return "+OK\r\n"
	})
	c, err := latchkey.Connect(context.Background(), "redis://"+addr, latchkey.Options{RetryBudget: 2 * time.Second})
	require.NoError(t, err)
	full.Store(true)
	_, _ = c.NewMutex("x").TryLock(context.Background()) // ends the connection that there is
	_, err = c.NewMutex("x").TryLock(context.Background())
	require.ErrorIs(t, err, latchkey.ErrUnavailable)
	require.NotErrorIs(t, err, latchkey.ErrUnknownOutcome)
	require.ErrorContains(t, err, "max number of clients reached")
	_ = c.Close(context.Background())
}

// A cluster whose slots nobody has assigned is no silent server.
func TestConnect_to_a_cluster_without_slots(t *testing.T) {
	t.Parallel()
	addr := scripted(t, func(command string) string {
		switch {
		case strings.HasPrefix(command, "HELLO"):
			return clusterReply
		case strings.HasPrefix(command, "CLUSTER"):
			return "*0\r\n"
		}
		return "+OK\r\n"
	})
	_, err := latchkey.Connect(context.Background(), "redis://"+addr, latchkey.Options{})
	require.ErrorIs(t, err, latchkey.ErrUnavailable)
	require.ErrorContains(t, err, "no node of the cluster serves any slot")
}

func TestConnect_to_nobody_fails_clearly(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, silent.Close())
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err = latchkey.Connect(ctx, "redis://:secret@"+silent.Addr().String(), latchkey.Options{})
	require.ErrorContains(t, err, silent.Addr().String())
	require.NotContains(t, err.Error(), "secret")
	require.NoError(t, ctx.Err())
}

func TestConnect_obeys_its_context(t *testing.T) {
	mute, err := net.Listen("tcp", "127.0.0.1:0") // accepts and never answers
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, mute.Close()) })
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err = latchkey.Connect(ctx, "redis://"+mute.Addr().String(), latchkey.Options{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}
