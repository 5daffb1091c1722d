package connect_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/engine/connect"
	"github.com/latchkey-go/latchkey/internal/transport/nodes"
)

// Each message says what is wrong with the URL and what Connect wants. No message contains a
// secret.
func TestConnect_says_what_is_wrong_with_a_URL(t *testing.T) {
	known := "known are addr, client_name, db, dial_timeout, master_set, protocol, skip_verify, write_timeout"
	for url, want := range map[string]string{
		"":                      "\"\" is not the URL of a server; want redis://host:port",
		"localhost:6379":        `"localhost:6379" is not the URL of a server; want redis://host:port`,
		"127.0.0.1:6379":        `"127.0.0.1:6379" is not the URL of a server; want redis://host:port`,
		"user:secret@localhost": `"?" is not the URL of a server; want redis://host:port`,
		"http://localhost":      `the URL "http://localhost" has an unknown scheme; want redis://host:port, rediss://host:port or unix:///path`,
		"redis://a:secret@%zz": "the URL of the server cannot be parsed; percent-encode what is special in its password " +
			"(% is %25, / is %2F, # is %23); want redis://host:port",
		"redis://a:secret%zz@h": "the URL of the server cannot be parsed; percent-encode what is special in its password " +
			"(% is %25, / is %2F, # is %23); want redis://host:port",
		"redis://h:1,g:2":                 `the URL "redis://h:1,g:2" names several hosts; give the others as ?addr=host:port`,
		"redis://h:99999":                 `the address "h:99999" is not host:port with a port from 1 to 65535`,
		"redis://h:0":                     `the address "h:0" is not host:port with a port from 1 to 65535`,
		"redis://h:99999999999999999999":  `the address "h:99999999999999999999" is not host:port with a port from 1 to 65535`,
		"redis://h?addr=g:65536":          `the address "g:65536" is not host:port with a port from 1 to 65535`,
		"redis://h?addr=g":                `the URL "redis://h?addr=g" has an addr that is not host:port`,
		"redis://h,g":                     `the URL "redis://h,g" names several hosts; give the others as ?addr=host:port`,
		"redis://h?pool_size=10":          `the URL "redis://h" has the unknown parameter pool_size; ` + known,
		"redis://u:secret@h?pass=secret2": `the URL "redis://u:xxxxx@h" has the unknown parameter pass; ` + known,
		"redis://h?db=1&db=2":             `the URL "redis://h?db=1&db=2" has the parameter db more than once`,
		"redis://h/1?db=2":                `the URL "redis://h/1?db=2" has two databases, in the path and as db`,
		"redis://h/one":                   `the URL "redis://h/one": invalid database number: "one"`,
		"redis://h?master_set=":           `the URL "redis://h?master_set=" has the parameter master_set without a value`,
		"redis://h?skip_verify=true":      `the URL "redis://h?skip_verify=true" has skip_verify, which is for rediss://`,
		"redis://h?protocol=4":            `the URL "redis://h?protocol=4" has a protocol that is not 2 or 3`,
		"redis://h?dial_timeout=5":        `the URL "redis://h?dial_timeout=5" has a dial_timeout that is not a positive duration such as 2s`,
		"redis://h?write_timeout=-1s":     `the URL "redis://h?write_timeout=-1s" has a write_timeout that is not a positive duration such as 2s`,
		"redis://h#x":                     `the URL "redis://h#x" has a fragment (#…); write # in a password as %23`,
		"unix://run/redis.sock":           `the URL "unix://run/redis.sock" names no socket; want unix:///path/of/socket`,
	} {
		t.Run(url, func(t *testing.T) {
			_, err := latchkey.Connect(context.Background(), url, latchkey.Options{})
			require.ErrorIs(t, err, latchkey.ErrInvalid)
			assert.Equal(t, "latchkey: invalid argument: "+want, err.Error())
			assert.NotContains(t, err.Error(), "secret")
		})
	}
}

// A password with a character that ends it is not taken for a database, a parameter or a host, and
// no part of it is shown.
func TestConnect_says_that_a_password_has_to_be_encoded(t *testing.T) {
	for _, url := range []string{
		"redis://u:12/secret@h:1", "redis://:sec/secret@h:1/0", "redis://u:12#secret@h", "redis://u:secret#secret@h:1/0",
		"redis://u:12?secret@h", "redis://u:12?secret=secret@h", "redis://u:12?db=secret@h", "redis://:secret?@h:1", "redis://u:a@b/secret@h", "rediss://u:1/#?secret@h:1",
		"redis://u:12/secret@h?client_name=me", "redis://secret/secret:p@h",
	} {
		t.Run(url, func(t *testing.T) {
			_, err := latchkey.Connect(context.Background(), url, latchkey.Options{})
			require.ErrorIs(t, err, latchkey.ErrInvalid)
			assert.ErrorContains(t, err, "percent-encode it: / is %2F, # is %23, ? is %3F, % is %25")
			assert.NotContains(t, err.Error(), "sec")
		})
	}
	for _, url := range []string{"redis://h?client_name=me@host", "redis://u:p@ss@h", "redis://u:%2F%23%3F%25@h:1/2", "unix:///run/a@b.sock"} {
		_, err := connect.ParseURL(url)
		require.NoError(t, err, url)
	}
}

// Every parameter that Connect knows takes effect.
func TestConnect_understands_what_it_knows(t *testing.T) {
	settings, err := connect.ParseURL("rediss://u:p@h:1/3?addr=g:2&addr=i:6379&client_name=me&dial_timeout=5s&write_timeout=7s" +
		"&protocol=2&skip_verify=true&master_set=main")
	require.NoError(t, err)
	assert.Equal(t, []string{"h:1", "g:2", "i:6379"}, settings.InitAddress)
	assert.Equal(t, "u p me main", strings.Join(
		[]string{settings.Username, settings.Password, settings.ClientName, settings.Sentinel.MasterSet}, " "))
	assert.Equal(t, 3, settings.SelectDB)
	assert.Equal(t, 5*time.Second, settings.Dialer.Timeout)
	assert.Equal(t, 7*time.Second, settings.ConnWriteTimeout)
	assert.True(t, settings.AlwaysRESP2)
	assert.True(t, settings.TLSConfig.InsecureSkipVerify)
	settings, err = connect.ParseURL("unix:///run/redis.sock?db=4")
	require.NoError(t, err)
	assert.Equal(t, []string{"/run/redis.sock"}, settings.InitAddress)
	assert.Equal(t, 4, settings.SelectDB)
}

// The error distinguishes TLS on a port that does not speak it from a server that is silent,
// whether the dial timeout or the caller ends the attempt.
func TestConnect_says_that_there_was_no_TLS_handshake(t *testing.T) {
	t.Parallel()
	mute := silent(t)
	_, err := latchkey.Connect(context.Background(), "rediss://"+mute+"?dial_timeout=1s", latchkey.Options{})
	require.EqualError(t, err, `latchkey: connect "rediss://`+mute+`?dial_timeout=1s": server unavailable: no TLS handshake with `+mute+
		": no answer in time; is this the port for TLS (rediss)?")

	ctx, cancel := context.WithTimeout(context.Background(), time.Second) // enough to connect on a busy machine
	defer cancel()
	_, err = latchkey.Connect(ctx, "rediss://"+mute, latchkey.Options{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.EqualError(t, err, `latchkey: connect "rediss://`+mute+`": server unavailable: no TLS handshake with `+mute+
		" so far: context deadline exceeded")

	plain := scripted(t, func(string) string { return "" })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go answerAll(listener, "-ERR unknown command\r\n")
	_, err = latchkey.Connect(context.Background(), "rediss://"+listener.Addr().String(), latchkey.Options{})
	require.ErrorContains(t, err, "the server answers without TLS; is this the port for TLS (rediss)?")
	_, err = latchkey.Connect(context.Background(), "rediss://"+plain, latchkey.Options{})
	require.ErrorContains(t, err, "no TLS handshake with "+plain)
}

// silent starts a server that accepts connections and sends nothing.
func silent(t *testing.T) (addr string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String()
}

// answerAll sends the same text on every connection.
func answerAll(listener net.Listener, text string) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		_, _ = conn.Write([]byte(text))
		_ = conn.Close()
	}
}

// A caller whose context ends learns how far Connect got.
func TestConnect_says_how_far_it_came(t *testing.T) {
	t.Parallel()
	mute := silent(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, err := latchkey.Connect(ctx, "redis://"+mute, latchkey.Options{})
	require.ErrorIs(t, err, latchkey.ErrUnavailable)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.EqualError(t, err, `latchkey: connect "redis://`+mute+`": server unavailable: connected to `+mute+
		", which has not answered so far: context deadline exceeded")
}

func TestURLs(t *testing.T) {
	for _, good := range []string{"redis://h", "redis://h:1/", "redis://u:p@h:1/3", "rediss://h", "unix:///run/r.sock?db=2", "redis://h?master_set=m&addr=i:2"} {
		parsed, err := connect.ParseURL(good)
		require.NoError(t, err, good)
		settings, err := connect.Completed(parsed)
		require.NoError(t, err, good)
		require.Equal(t, -1, settings.PipelineMultiplex)
		require.Equal(t, nodes.DialTimeout, settings.Dialer.Timeout)
	}
	for _, bad := range []string{"", "h:6379", "http://h", "redis://h1:1,h2:2", "redis://h/x", "redis://h/1/2", "redis://u:secret@h/x", "redis://[::1"} {
		_, err := connect.ParseURL(bad)
		require.ErrorIs(t, err, latchkey.ErrInvalid, bad)
		require.NotContains(t, err.Error(), "secret")
	}
}
