package tests

import (
	"bufio"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
)

// repeatingServer answers each command as servers do that do not know it: with its arguments. It closes the connection
// after some of them.
func repeatingServer(t *testing.T, closes int) (addr string) {
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
			go func() {
				defer conn.Close()
				r := bufio.NewReader(conn)
				line := func() string {
					text, err := r.ReadString('\n')
					if err != nil {
						return ""
					}
					return strings.TrimSpace(text)
				}
				for n := 1; ; n++ {
					count, err := strconv.Atoi(strings.TrimPrefix(line(), "*"))
					if err != nil {
						return
					}
					var words []string
					for range count {
						line()
						words = append(words, line())
					}
					_, _ = fmt.Fprintf(conn, "-ERR unknown command '%s', with args beginning with: '%s' \r\n", words[0], strings.Join(words[1:], "' '"))
					if n == closes {
						return
					}
				}
			}()
		}
	}()
	return listener.Addr().String()
}

// No error shows the password, even if the server repeats it.
func TestPasswordIsNotShown(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"", "?protocol=2", "?client_name=me"} {
		for _, closes := range []int{1, 2, 3, 0} {
			addr := repeatingServer(t, closes)
			for _, user := range []string{"", "user"} {
				_, err := latchkey.Connect(within(t, 5*time.Second), "redis://"+user+":topsecret@"+addr+protocol, latchkey.Options{})
				require.Error(t, err)
				assert.NotContains(t, err.Error(), "topsecret", "%s closes after %d", protocol, closes)
			}
		}
	}
}
