package latchkeygoredis

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"
	"github.com/redis/rueidis"
)

// credentials returns the function that supplies the credentials of each connection, or nil if they
// never change.
func credentials(o *redis.Options) func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
	switch {
	case o.StreamingCredentialsProvider != nil:
		return (&stream{provider: o.StreamingCredentialsProvider}).current
	case o.CredentialsProviderContext != nil:
		return func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			username, password, err := o.CredentialsProviderContext(ctx)
			return rueidis.AuthCredentials{Username: username, Password: password}, err
		}
	case o.CredentialsProvider != nil:
		return func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
			username, password := o.CredentialsProvider()
			return rueidis.AuthCredentials{Username: username, Password: password}, nil
		}
	}
	return nil
}

// stream is the listener of a provider that sends new credentials. It subscribes when they are
// first needed.
type stream struct {
	provider    auth.StreamingCredentialsProvider
	subscribing sync.Mutex
	newest      atomic.Pointer[auth.Credentials] // nil until it has subscribed
}

// OnNext keeps new credentials.
func (s *stream) OnNext(c auth.Credentials) { s.newest.Store(&c) }

// OnError does nothing: the last credentials stay in use.
func (s *stream) OnError(error) {}

// current returns the newest credentials. Connections that open at the same time share the
// subscription.
func (s *stream) current(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
	s.subscribing.Lock()
	defer s.subscribing.Unlock()
	if s.newest.Load() == nil {
		first, _, err := s.provider.Subscribe(s)
		if err != nil {
			return rueidis.AuthCredentials{}, err
		}
		s.newest.CompareAndSwap(nil, &first) // OnNext may have been called meanwhile
	}
	username, password := (*s.newest.Load()).BasicAuth()
	again := time.Now().Add(time.Minute) // an open connection then authenticates again, with the newest credentials
	return rueidis.AuthCredentials{Username: username, Password: password, RefreshAfter: again}, nil
}
