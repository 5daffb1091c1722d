// Command kubernetes is a service that imports data under a lock. It is ready for Kubernetes: it
// handles probes, SIGTERM and leases. The file deployment.yaml in this folder has the matching
// settings.
//
//	go run ./examples/kubernetes
//	curl -i localhost:8080/readyz
//	curl -i -X POST localhost:8080/imports/42
//
// The first import returns 200. A request for an import that is already running returns 409, and a
// request without Redis returns 503. On SIGTERM the pod becomes unready, finishes its requests,
// releases its locks, and exits with 0.
package main

import (
	"context"
	"errors"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/examples/internal/fleet"
)

const (
	// drain is how long requests may continue after SIGTERM. drain and closeLimit together are less
	// than terminationGracePeriodSeconds: a killed pod releases nothing, and others have to wait
	// for its leases to end.
	drain      = 20 * time.Second
	closeLimit = 5 * time.Second
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	address := os.Getenv("LISTEN")
	if address == "" {
		address = "localhost:8080"
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		log.Fatal(err)
	}
	if err := run(ctx, listener); err != nil {
		log.Fatal(err)
	}
	log.Print("all locks are released")
}

func run(ctx context.Context, listener net.Listener) (err error) {
	f, err := fleet.Start() // a real program takes the URL from its environment
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close(context.WithoutCancel(ctx))) }()
	client, err := latchkey.Connect(ctx, f.URL(), latchkey.Options{
		KeyPrefix:   fleet.Prefix,
		LazyConnect: true, // the pod starts even if Redis is down
	})
	if err != nil {
		return err
	}
	defer func() {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
		defer cancel()
		err = errors.Join(err, client.Close(limited)) // releases all holds, and ends all waits
	}()

	s := &service{client: client}
	server := &http.Server{Handler: s.routes(), ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	log.Print("listening at ", listener.Addr())
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	s.draining.Store(true) // /readyz fails from now on
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	return server.Shutdown(limited)
}

// service has the state that the handlers share.
type service struct {
	client   *latchkey.Client
	checked  atomic.Bool // the server of the locks has the features and permissions that they need
	draining atomic.Bool
}

func (s *service) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(http.ResponseWriter, *http.Request) {}) // restarting the pod does not fix Redis
	mux.HandleFunc("GET /readyz", s.ready)
	mux.HandleFunc("POST /imports/{id}", s.load)
	return mux
}

// ready checks the server of the locks once, so that a roll-out fails on a wrong address or a
// missing permission. After that it does not check again: otherwise an outage would take all pods
// out of service, even for requests that need no lock.
func (s *service) ready(w http.ResponseWriter, r *http.Request) {
	if !s.checked.Load() {
		if err := s.client.Check(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		s.checked.Store(true)
	}
	if s.draining.Load() {
		http.Error(w, "shutting down", http.StatusServiceUnavailable)
	}
}

// load imports something, in one pod at a time.
func (s *service) load(w http.ResponseWriter, r *http.Request) {
	lock := s.client.NewLock("import:" + r.PathValue("id"))
	err := lock.Do(r.Context(), importData, latchkey.Wait(200*time.Millisecond))
	switch {
	case err == nil:
	case errors.Is(err, latchkey.ErrNotAcquired):
		http.Error(w, "another pod is importing this", http.StatusConflict)
	case errors.Is(err, latchkey.ErrUnavailable), errors.Is(err, latchkey.ErrClosed):
		w.Header().Set("Retry-After", "5")
		http.Error(w, "locks are unavailable", http.StatusServiceUnavailable)
	default: // ErrLost: the import stopped halfway, and another pod may have begun it
		log.Print(err)
		http.Error(w, "the import did not finish", http.StatusInternalServerError)
	}
}

// importData stops when its context ends, because the lock is lost or the client of the request is
// gone.
func importData(ctx context.Context) error {
	select {
	case <-time.After(2 * time.Second): // the work
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
