// Command kubernetes is a service that imports data under a lock, and is fit for Kubernetes: probes, SIGTERM
// and leases. deployment.yaml beside this file has the settings that belong to it.
//
//	go run ./examples/kubernetes
//	curl -i localhost:8080/readyz
//	curl -i -X POST localhost:8080/imports/42
//
// The first import answers 200, one that another pod has under way 409, and one without Redis 503.
// On SIGTERM the pod is not ready any more, lets its requests end, releases its locks, and exits with 0.
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
	// drain is for how long requests may go on after SIGTERM. With the time of Close it is less than
	// terminationGracePeriodSeconds: who is killed releases nothing, and others wait for the lease.
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
	f, err := fleet.Start() // a program takes the URL from its environment
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close(context.WithoutCancel(ctx))) }()
	client, err := latchkey.Connect(ctx, f.URL(), latchkey.Options{
		KeyPrefix:   fleet.Prefix,
		LazyConnect: true, // the pod starts although Redis is down
	})
	if err != nil {
		return err
	}
	defer func() {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
		defer cancel()
		err = errors.Join(err, client.Close(limited)) // releases what is held, and ends who waits
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
	s.draining.Store(true) // /readyz says no
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	return server.Shutdown(limited)
}

// service is what the handlers share.
type service struct {
	client   *latchkey.Client
	checked  atomic.Bool // the server of the locks does and permits what they need
	draining atomic.Bool
}

func (s *service) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(http.ResponseWriter, *http.Request) {}) // restarting the pod does not mend Redis
	mux.HandleFunc("GET /readyz", s.ready)
	mux.HandleFunc("POST /imports/{id}", s.load)
	return mux
}

// ready checks the server of the locks once, to learn at the roll-out of a wrong address or a missing permission.
// Later it does not ask: an outage would take all pods away, also from requests that need no lock.
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
		http.Error(w, "another pod imports this", http.StatusConflict)
	case errors.Is(err, latchkey.ErrUnavailable), errors.Is(err, latchkey.ErrClosed):
		w.Header().Set("Retry-After", "5")
		http.Error(w, "no locks at the moment", http.StatusServiceUnavailable)
	default: // ErrLost: stopped half-way, and another pod may have begun
		log.Print(err)
		http.Error(w, "the import was not finished", http.StatusInternalServerError)
	}
}

// importData stops when its context ends: the lock is lost, or the client of the request is gone.
func importData(ctx context.Context) error {
	select {
	case <-time.After(2 * time.Second): // the work
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
