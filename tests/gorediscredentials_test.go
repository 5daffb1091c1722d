package tests

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
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// provider provides credentials that change, in every way that go-redis supports.
type provider struct {
	mu       sync.Mutex
	password string
	told     auth.CredentialsListener
	asked    int
}

func (p *provider) current() (username, password string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	return "locks", p.password
}

func (p *provider) withContext(context.Context) (username, password string, err error) {
	username, password = p.current()
	return username, password, nil
}

func (p *provider) Subscribe(to auth.CredentialsListener) (auth.Credentials, auth.UnsubscribeFunc, error) {
	username, password := p.current()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told = to
	return auth.NewBasicCredentials(username, password), func() error { return nil }, nil
}

func (p *provider) change(password string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.password = password
	if p.told != nil {
		p.told.OnNext(auth.NewBasicCredentials("locks", password))
	}
}

// The next connection uses a changed password, however go-redis learns of it. A hold stays held.
func TestGoRedis_credentials(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Settings)
	rig.Need(t, rig.Single)
	server := rig.Fresh(t)
	ways := map[string]func(*redis.Options, *provider){
		"a provider": func(o *redis.Options, p *provider) { o.CredentialsProvider = p.current },
		"a provider with a context": func(o *redis.Options, p *provider) {
			o.CredentialsProviderContext = p.withContext
		},
		"a stream": func(o *redis.Options, p *provider) { o.StreamingCredentialsProvider = p },
		"a provider beside": func(o *redis.Options, p *provider) {
			o.CredentialsProvider, o.Username, o.Password = p.current, "old", "old"
		},
	}
	for what, set := range ways {
		t.Run(what, func(t *testing.T) {
			admin := rig.NewAdmin(t, server)
			user := func(password string) {
				admin.Do("ACL", "SETUSER", "locks", "reset", "on", ">"+password, "~*", "&*", "+@all")
			}
			user("first")
			p, o := &provider{password: "first"}, &redis.Options{Addr: server.Addr()}
			set(o, p)
			client := open(t, converted(t, o), latchkey.Options{Lease: time.Minute})
			hold := mustLock(t, client.NewLock(rig.Name(t)))
			user("second")
			p.change("second")
			require.Positive(t, admin.Int("CLIENT", "KILL", "USER", "locks"))
			require.NoError(t, hold.Extend(within(t, soon), 2*time.Minute), "by a new connection")
			require.Contains(t, admin.Text("CLIENT", "LIST"), " user=locks ")
			mustUnlock(t, hold)
		})
	}
}

// Credentials with a refresh time are requested again at that time on an open connection.
func TestGoRedis_credentials_are_refreshed(t *testing.T) {
	rig.Need(t, rig.Single)
	var asked atomic.Int32
	option := rueidis.MustParseURL(rig.Shared().URL())
	option.AuthCredentialsFn = func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
		asked.Add(1)
		return rueidis.AuthCredentials{RefreshAfter: time.Now().Add(20 * time.Millisecond)}, nil
	}
	client := open(t, option, latchkey.Options{})
	hold := mustLock(t, client.NewLock(rig.Name(t)))
	before := asked.Load()
	rig.Eventually(t, soon, "they are asked for again", func() error {
		if asked.Load() < before+3 {
			return errors.New("not yet")
		}
		return nil
	})
	mustUnlock(t, hold)
}
