package latchkeygoredis

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey"
)

// Settings are what go-redis makes a client of.
type Settings interface {
	*redis.Options | *redis.ClusterOptions | *redis.FailoverOptions | *redis.UniversalOptions
}

// Open opens a Latchkey client for the server, cluster or Sentinels of a go-redis client with these
// settings. It is [latchkey.Open] with the result of [ClientOption], and has the errors of both.
// If ClientOption refuses the settings, Open dials nothing.
func Open[S Settings](ctx context.Context, settings S, options latchkey.Options) (*latchkey.Client, error) {
	converted, err := ClientOption(settings)
	if err != nil {
		return nil, err
	}
	return latchkey.Open(ctx, converted, options)
}

// ClientOption converts the settings of a go-redis client for [latchkey.Open]. Change the result if
// locks need other settings than data. UniversalOptions mean what they mean for
// redis.NewUniversalClient.
//
// The error matches [latchkey.ErrInvalid] if locks cannot do without a setting that has no
// counterpart: see the package documentation, which also lists the settings that are ignored.
//
// The result shares the addresses, TLSConfig and the functions with settings, and copies the rest.
// The Latchkey client calls the functions as long as it lives.
func ClientOption[S Settings](settings S) (rueidis.ClientOption, error) {
	switch o := any(settings).(type) {
	case *redis.ClusterOptions:
		return ofCluster(o)
	case *redis.FailoverOptions:
		return ofFailover(o)
	case *redis.UniversalOptions:
		return ofUniversal(*o)
	default:
		return ofServer(*any(settings).(*redis.Options))
	}
}

func ofServer(o redis.Options) (rueidis.ClientOption, error) {
	if o.Addr == "FailoverClient" { // the address that go-redis gives such a client
		return refuse("these Options belong to a client of NewFailoverClient: pass its FailoverOptions")
	}
	if o.OnConnect != nil {
		return refuse("OnConnect cannot be called: clear it in a copy of the settings if locks do not need it")
	}
	option := rueidis.ClientOption{
		InitAddress: []string{cmp.Or(o.Addr, "localhost:6379")},
		Username:    o.Username,
		Password:    o.Password,
		SelectDB:    o.DB,
		TLSConfig:   o.TLSConfig,
		AlwaysRESP2: o.Protocol == 2,
		Dialer:      net.Dialer{Timeout: o.DialTimeout},
		DialCtxFn:   dialing(o),
	}
	if o.ClientName != "" {
		option.ClientName = o.ClientName + "-locks"
	}
	if current := credentials(&o); current != nil {
		option.Username, option.Password, option.AuthCredentialsFn = "", "", current
	}
	return option, nil
}

// dialing returns the function that opens connections, or nil if those of Latchkey do.
func dialing(o redis.Options) func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
	dial, network := o.Dialer, cmp.Or(o.Network, "tcp")
	if strings.HasPrefix(o.Addr, "/") {
		network = "unix"
	}
	if dial == nil && network == "tcp" {
		return nil
	}
	if dial == nil {
		o.DialTimeout = cmp.Or(o.DialTimeout, 2*time.Second)
		dial = redis.NewDialer(&o)
	}
	return func(ctx context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
		return dial(ctx, network, addr)
	}
}

func ofCluster(o *redis.ClusterOptions) (rueidis.ClientOption, error) {
	if o.ClusterSlots != nil {
		return refuse("ClusterSlots: locks need a cluster that reports its slots itself, or FailoverOptions with Sentinels")
	}
	option, err := ofServer(redis.Options{
		OnConnect: o.OnConnect, Dialer: o.Dialer, DialTimeout: o.DialTimeout, TLSConfig: o.TLSConfig,
		Username: o.Username, Password: o.Password, CredentialsProvider: o.CredentialsProvider,
		CredentialsProviderContext:   o.CredentialsProviderContext,
		StreamingCredentialsProvider: o.StreamingCredentialsProvider,
		ClientName:                   o.ClientName, Protocol: o.Protocol,
	})
	option.InitAddress = o.Addrs
	return option, err
}

func ofFailover(o *redis.FailoverOptions) (rueidis.ClientOption, error) {
	if o.CredentialsProvider != nil || o.CredentialsProviderContext != nil || o.StreamingCredentialsProvider != nil {
		return refuse("the Sentinels would receive the credentials of a provider too: " +
			"clear it in a copy of the settings, and set AuthCredentialsFn in the result of ClientOption")
	}
	option, err := ofServer(redis.Options{
		OnConnect: o.OnConnect, Dialer: o.Dialer, DialTimeout: o.DialTimeout, TLSConfig: o.TLSConfig,
		Username: o.Username, Password: o.Password, DB: o.DB, ClientName: o.ClientName, Protocol: o.Protocol,
	})
	option.InitAddress = o.SentinelAddrs
	option.Sentinel = rueidis.SentinelOption{
		MasterSet: o.MasterName, Username: o.SentinelUsername, Password: o.SentinelPassword,
		ClientName: option.ClientName, TLSConfig: o.TLSConfig,
	}
	return option, err
}

// ofUniversal takes a copy, because the conversions of go-redis change what they convert.
func ofUniversal(o redis.UniversalOptions) (rueidis.ClientOption, error) {
	switch {
	case o.MasterName != "":
		return ofFailover(o.Failover())
	case len(o.Addrs) > 1 || o.IsClusterMode:
		return ofCluster(o.Cluster())
	}
	return ofServer(*o.Simple())
}

// refuse returns an error for settings that locks cannot do without.
func refuse(why string) (rueidis.ClientOption, error) {
	return rueidis.ClientOption{}, fmt.Errorf("%w: %s", latchkey.ErrInvalid, why)
}
