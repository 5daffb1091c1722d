package nodes

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// watched returns a watched connection and its other end, which is read all the time.
func watched(t *testing.T) (near *watchedConn, far net.Conn) {
	t.Helper()
	conn, far := net.Pipe()
	near = NewTopology(false, 1).common.connections.watch(conn)
	go func() {
		for b := make([]byte, 64); ; {
			if _, err := far.Read(b); err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = near.Close()
		_ = far.Close()
	})
	return near, far
}

func TestConnectionThatDoesNotAnswerIsBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := watched(t)
		start := time.Now()
		end := make(chan time.Duration, 1)
		go func() {
			for b := make([]byte, 64); ; {
				if _, err := near.Read(b); err != nil {
					end <- time.Since(start)
					return
				}
			}
		}()
		for range 20 { // answered at once, or late
			_, err := near.Write([]byte("ask"))
			require.NoError(t, err)
			time.Sleep(answerTimeout * 3 / 4)
			_, err = far.Write([]byte("answer"))
			require.NoError(t, err)
			time.Sleep(time.Second / 3)
		}
		time.Sleep(time.Hour) // idle
		select {
		case at := <-end:
			require.Failf(t, "broken", "after %v", at)
		default:
		}
		silent := time.Since(start)
		for range 10 {
			_, _ = near.Write([]byte("ask"))
			time.Sleep(answerTimeout / 9)
		}
		assert.Equal(t, answerTimeout+readerPause, <-end-silent)
	})
}
