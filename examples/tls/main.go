// Command tls uses locks on a server that requires TLS and a client certificate, as a user with the
// permissions that docs/reference/keys.md lists. First start the server, which needs redis-server
// and openssl:
//
//	examples/tls/server.sh /tmp/latchkey-tls 6390
//	go run ./examples/tls -files /tmp/latchkey-tls -addr localhost:6390
//
// server.sh creates the certificates and the password, and users.acl defines the user. The failures
// are a client without a certificate, and a lock whose name the user may not use.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey"
)

func main() {
	files := flag.String("files", "/tmp/latchkey-tls", "the folder with the certificates and the password")
	address := flag.String("addr", "localhost:6390", "host and port of the server")
	flag.Parse()
	if err := run(context.Background(), *files, *address); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, files, address string) (err error) {
	client, err := connect(ctx, files, address, "orders:", true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close(ctx)) }()
	if err := client.Check(ctx); err != nil { // reports missing permissions at the start
		return err
	}
	err = client.NewLock("42").Do(ctx, func(ctx context.Context) error {
		return context.Cause(ctx) // the work; ErrLost if the lock is lost
	}, latchkey.Wait(5*time.Second))
	if err != nil {
		return err
	}
	fmt.Println("orders:42 was locked over TLS, by the user latchkey")

	outside, err := connect(ctx, files, address, "invoices:", true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, outside.Close(ctx)) }()
	_, err = outside.NewLock("42").TryLock(ctx)
	var refused *rueidis.RedisError
	fmt.Println("invoices:42 is not permitted:", errors.As(err, &refused) && strings.Contains(err.Error(), "NOPERM"))

	stranger, err := connect(ctx, files, address, "orders:", false)
	if err == nil {
		return errors.Join(errors.New("a client without a certificate is accepted"), stranger.Close(ctx))
	}
	fmt.Println("a client without a certificate is refused:", errors.Is(err, latchkey.ErrUnavailable))
	return nil
}

// connect opens a client whose names begin with prefix. Each connection reads the certificate and
// the password again, so both may change while the program runs.
func connect(ctx context.Context, files, address, prefix string, certified bool) (*latchkey.Client, error) {
	pem, err := os.ReadFile(filepath.Join(files, "ca.crt"))
	if err != nil {
		return nil, err
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(pem) {
		return nil, errors.New("ca.crt has no certificate")
	}
	settings := &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}
	if certified {
		settings.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(filepath.Join(files, "client.crt"), filepath.Join(files, "client.key"))
			return &pair, err
		}
	}
	return latchkey.Open(ctx, rueidis.ClientOption{
		InitAddress: []string{address},
		TLSConfig:   settings,
		AuthCredentialsFn: func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
			password, err := os.ReadFile(filepath.Join(files, "password"))
			return rueidis.AuthCredentials{Username: "latchkey", Password: strings.TrimSpace(string(password))}, err
		},
	}, latchkey.Options{KeyPrefix: prefix})
}
