package tests

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// open returns a client of the library, which is closed at the end of the test.
func open(t *testing.T, settings rueidis.ClientOption, options latchkey.Options) *latchkey.Client {
	t.Helper()
	client, err := latchkey.Open(within(t, soon), settings, options)
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close(within(t, soon)) })
	return client
}

// Open does what Connect does, for servers of all kinds.
func TestOpen(t *testing.T) {
	server := rig.Shared()
	if server.Embedded() {
		t.Skip("the embedded server must not be taken for a cluster")
	}
	settings, err := rueidis.ParseURL(server.URL())
	require.NoError(t, err)
	client := open(t, settings, latchkey.Options{})
	mustUnlock(t, mustLock(t, client.NewFencedLock(rig.Name(t))))
	require.NoError(t, client.Check(within(t, soon)))
}

// The server requires a certificate. A client that has one is served. A client that has none, or
// that does not know the authority of the server, gets an error.
func TestOpen_with_client_certificates(t *testing.T) {
	rig.Need(t, rig.Single)
	authority := newAuthority(t)
	addr := serveTLS(t, rig.Shared(), authority)
	settings := func(config *tls.Config) rueidis.ClientOption {
		return rueidis.ClientOption{InitAddress: []string{addr}, TLSConfig: config}
	}
	mutual := &tls.Config{RootCAs: authority.pool, Certificates: []tls.Certificate{authority.issue(t)}}
	lock := open(t, settings(mutual), latchkey.Options{}).NewLock(rig.Name(t))
	mustUnlock(t, mustLock(t, lock))

	rig.Eventually(t, soon, "a certificate is required", func() error {
		_, err := latchkey.Open(within(t, soon), settings(&tls.Config{RootCAs: authority.pool}), latchkey.Options{})
		require.Error(t, err)
		if !strings.Contains(err.Error(), "certificate required") {
			return err
		}
		return nil
	})
	rig.Eventually(t, soon, "the authority is unknown, unless the server answers late", func() error {
		_, err := latchkey.Open(within(t, soon), settings(&tls.Config{Certificates: mutual.Certificates}), latchkey.Options{})
		require.ErrorContains(t, err, "no TLS handshake with "+addr)
		if !strings.Contains(err.Error(), "unknown authority") {
			return err
		}
		return nil
	})
}

// An address mapper does not change whose certificate is expected.
func TestOpen_with_a_mapper_checks_the_certificate_of_the_server(t *testing.T) {
	rig.Need(t, rig.Single)
	authority := newAuthority(t)
	addr := serveTLS(t, rig.Shared(), authority)
	config := &tls.Config{RootCAs: authority.pool, Certificates: []tls.Certificate{authority.issue(t)}}
	mapped := latchkey.Options{Tuning: latchkey.Tuning{AddressMapper: func(string) string { return addr }}}
	open(t, rueidis.ClientOption{InitAddress: []string{"127.0.0.1:1"}, TLSConfig: config}, mapped)
	_, err := latchkey.Open(within(t, soon),
		rueidis.ClientOption{InitAddress: []string{"redis.internal:1"}, TLSConfig: config}, mapped)
	assert.ErrorContains(t, err, "redis.internal")
}

// The password changes while a lock is held and connections are cut. The next connection uses the
// new password, and the hold survives.
func TestOpen_with_credentials_that_change(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Settings, rig.Single)
	server := rig.Fresh(t)
	admin := rig.NewAdmin(t, server)
	admin.Do("ACL", "SETUSER", "app", "on", ">first", "~*", "&*", "+@all")
	var password atomic.Value
	password.Store("first")
	var asked atomic.Int32
	client := open(t, rueidis.ClientOption{
		InitAddress: []string{server.Addr()},
		AuthCredentialsFn: func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
			asked.Add(1)
			return rueidis.AuthCredentials{Username: "app", Password: password.Load().(string)}, nil
		},
	}, latchkey.Options{})
	name := rig.Name(t)
	hold := mustLock(t, client.NewLock(name))

	before := asked.Load()
	password.Store("second")
	admin.Do("ACL", "SETUSER", "app", "resetpass", ">second")
	admin.Do("CLIENT", "KILL", "USER", "app")

	require.NoError(t, hold.Extend(within(t, soon), time.Minute))
	assert.Greater(t, asked.Load(), before)
	mustUnlock(t, hold)
}

// Without credentials nothing is sent, so the outcome is never unknown.
func TestOpen_with_credentials_that_cannot_be_had(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Settings, rig.Single)
	server := rig.Fresh(t)
	vault, sealed := errors.New("the vault is sealed"), atomic.Bool{}
	settings := rueidis.ClientOption{
		InitAddress: []string{server.Addr()},
		AuthCredentialsFn: func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
			if sealed.Load() {
				return rueidis.AuthCredentials{}, vault
			}
			return rueidis.AuthCredentials{}, nil
		},
	}
	lock := open(t, settings, brief).NewLock(rig.Name(t))
	unlockInTheEnd(t, mustLock(t, lock))
	sealed.Store(true)
	rig.NewAdmin(t, server).Do("CLIENT", "KILL", "TYPE", "normal")

	// The outcome of a command that is sent on the old connection, before the client has seen it
	// close, is unknown. On a busy machine the time may also be over before the vault is queried.
	rig.Eventually(t, soon, "the vault is the reason, and nothing is in doubt", func() error {
		_, err := lock.TryLock(within(t, soon))
		if errors.Is(err, latchkey.ErrUnknownOutcome) || !errors.Is(err, vault) {
			return fmt.Errorf("not yet: %w", err)
		}
		return nil
	})
	_, err := latchkey.Open(within(t, soon), settings, brief)
	assert.ErrorIs(t, err, vault)

	sealed.Store(false)
	unlockInTheEnd(t, mustLock(t, lock))
}

// Every connection goes through the caller's dialer, including those of waiters.
func TestOpen_with_a_custom_dialer(t *testing.T) {
	rig.Need(t, rig.Single)
	server := rig.Shared()
	dialed := make(chan string, 100)
	settings := rueidis.ClientOption{
		InitAddress: []string{"tunnel:1"},
		DialCtxFn: func(ctx context.Context, address string, dialer *net.Dialer, _ *tls.Config) (net.Conn, error) {
			dialed <- address
			return dialer.DialContext(ctx, "tcp", server.Addr())
		},
	}
	name := rig.Name(t)
	hold := mustLock(t, open(t, settings, latchkey.Options{}).NewLock(name))
	waiter := lockInBackground(within(t, soon), open(t, settings, latchkey.Options{}).NewLock(name))
	awaitWaiter(t, rig.NewAdmin(t, server), name)
	mustUnlock(t, hold)
	got := rig.Await(t, soon, "the waiter", waiter)
	require.NoError(t, got.err)
	mustUnlock(t, got.hold)
	require.GreaterOrEqual(t, len(dialed), 3, "two clients, and one waits")
	for range len(dialed) {
		assert.Equal(t, "tunnel:1", <-dialed)
	}
}

// authority issues certificates for 127.0.0.1 that are valid for an hour.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pool *x509.CertPool
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := certificateFor()
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	a := &authority{key: key, cert: cert, pool: x509.NewCertPool()}
	a.pool.AddCert(cert)
	return a
}

func certificateFor() *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		NotBefore:    time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
}

func (a *authority) issue(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificate(rand.Reader, certificateFor(), a.cert, key.Public(), a.key)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// serveTLS puts TLS in front of a server and requires client certificates of the authority.
func serveTLS(t *testing.T, server *rig.Server, a *authority) (addr string) {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{a.issue(t)}, ClientCAs: a.pool, ClientAuth: tls.RequireAndVerifyClientCert,
	})
	require.NoError(t, err)
	var links sync.WaitGroup
	t.Cleanup(func() { _ = listener.Close(); links.Wait() })
	links.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			links.Go(func() { forward(client, server.Addr()) })
		}
	})
	return listener.Addr().String()
}

// forward connects a client to an address until one of them closes the connection.
func forward(client net.Conn, addr string) {
	defer func() { _ = client.Close() }()
	if client.(*tls.Conn).Handshake() != nil {
		return
	}
	server, err := net.Dial("tcp", addr)
	if err != nil {
		return
	}
	go func() { _, _ = io.Copy(server, client); _ = server.Close() }()
	_, _ = io.Copy(client, server)
}
