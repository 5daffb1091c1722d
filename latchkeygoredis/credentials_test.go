package latchkeygoredis_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/latchkeygoredis"
)

// provider provides credentials that change, in every way that go-redis supports.
type provider struct {
	mu            sync.Mutex
	password      string
	told          auth.CredentialsListener
	fails         error
	subscriptions atomic.Int32
}

func (p *provider) current() (username, password string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return "locks", p.password
}

func (p *provider) withContext(ctx context.Context) (username, password string, err error) {
	if _, ends := ctx.Deadline(); !ends {
		return "", "", errors.New("the context has no deadline")
	}
	username, password = p.current()
	return username, password, p.fails
}

// Subscribe takes a while, so that connections that open at the same time meet in it.
func (p *provider) Subscribe(to auth.CredentialsListener) (auth.Credentials, auth.UnsubscribeFunc, error) {
	p.subscriptions.Add(1)
	time.Sleep(time.Millisecond)
	username, password := p.current()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fails != nil {
		return nil, nil, p.fails
	}
	p.told = to
	return auth.NewBasicCredentials(username, password), func() error { return nil }, nil
}

func (p *provider) change(password string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.password = password
	if p.told != nil {
		p.told.OnNext(auth.NewBasicCredentials("locks", password))
		p.told.OnError(errors.New("the last ones stay in use"))
	}
}

// ways are those by which go-redis learns the credentials from a provider. Credentials that do not
// change stand beside them and have no effect.
var ways = map[string]func(*redis.Options, *provider){
	"a provider":                func(o *redis.Options, p *provider) { o.CredentialsProvider = p.current },
	"a provider with a context": func(o *redis.Options, p *provider) { o.CredentialsProviderContext = p.withContext },
	"a stream":                  func(o *redis.Options, p *provider) { o.StreamingCredentialsProvider = p },
}

// credentialsOf returns the function that supplies the credentials of a client.
func credentialsOf(t *testing.T, o *redis.Options) func() (rueidis.AuthCredentials, error) {
	t.Helper()
	option, err := latchkeygoredis.ClientOption(o)
	require.NoError(t, err)
	require.Empty(t, option.Username+option.Password, "Open refuses them beside a function")
	return func() (rueidis.AuthCredentials, error) {
		return option.AuthCredentialsFn(rueidis.AuthCredentialsContext{})
	}
}

// Each connection gets the newest credentials, and the error of a provider.
func TestCredentialsAreTheNewest(t *testing.T) {
	t.Parallel()
	for what, set := range ways {
		p, o := &provider{password: "first", fails: errors.New("not yet")}, &redis.Options{Username: "old", Password: "old"}
		set(o, p)
		current := credentialsOf(t, o)
		if what != "a provider" { // which has no error
			_, err := current()
			require.ErrorIs(t, err, p.fails, what)
		}
		p.fails = nil
		for _, password := range []string{"first", "second"} {
			p.change(password)
			got, err := current()
			require.NoError(t, err, what)
			assert.Equal(t, "locks "+password, got.Username+" "+got.Password, what)
			assert.Equal(t, what == "a stream", !got.RefreshAfter.IsZero(), "%s: open connections authenticate again", what)
		}
	}
}

// If several providers are set, the one that go-redis prefers is asked.
func TestCredentialsOfThePreferredProvider(t *testing.T) {
	t.Parallel()
	is := func(password string) *provider { return &provider{password: password} }
	o := &redis.Options{CredentialsProvider: is("plain").current}
	for _, step := range []struct {
		want string
		set  func()
	}{
		{"plain", func() {}},
		{"with a context", func() { o.CredentialsProviderContext = is("with a context").withContext }},
		{"stream", func() { o.StreamingCredentialsProvider = is("stream") }},
	} {
		step.set()
		got, err := credentialsOf(t, o)()
		require.NoError(t, err)
		assert.Equal(t, step.want, got.Password)
	}
}

// Connections that open at the same time share one subscription.
func TestCredentialsOfAStreamAreSubscribedOnce(t *testing.T) {
	t.Parallel()
	p := &provider{password: "first"}
	current := credentialsOf(t, &redis.Options{StreamingCredentialsProvider: p})
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			_, err := current()
			assert.NoError(t, err)
		})
	}
	all.Wait()
	assert.EqualValues(t, 1, p.subscriptions.Load())
}

// eager is a provider that sends newer credentials before Subscribe returns.
type eager struct{}

func (eager) Subscribe(to auth.CredentialsListener) (auth.Credentials, auth.UnsubscribeFunc, error) {
	to.OnNext(auth.NewBasicCredentials("locks", "newer"))
	return auth.NewBasicCredentials("locks", "older"), func() error { return nil }, nil
}

func TestCredentialsThatArriveDuringTheSubscription(t *testing.T) {
	t.Parallel()
	got, err := credentialsOf(t, &redis.Options{StreamingCredentialsProvider: eager{}})()
	require.NoError(t, err)
	assert.Equal(t, "newer", got.Password)
}

// With Sentinels, every provider is refused: rueidis would send its credentials to them too.
func TestCredentialsAreNotSentToSentinels(t *testing.T) {
	t.Parallel()
	for what, o := range map[string]*redis.FailoverOptions{
		"a provider":                {CredentialsProvider: new(provider).current},
		"a provider with a context": {CredentialsProviderContext: new(provider).withContext},
		"a stream":                  {StreamingCredentialsProvider: new(provider)},
	} {
		_, err := latchkeygoredis.ClientOption(o)
		require.ErrorIs(t, err, latchkey.ErrInvalid, what)
		require.ErrorContains(t, err, "AuthCredentialsFn", what)
	}
}
