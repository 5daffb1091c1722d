package latchkey

import (
	"context"
	"strings"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/engine/connect"
)

// Connect opens a client for a Redis or Valkey server:
//
//	redis://user:password@host:6379/0     one server, or a cluster by any node
//	rediss://host:6380                    the same with TLS
//	unix:///run/redis.sock?db=0
//	redis://h1:26379?addr=h2:26379&master_set=main    by Sentinel
//
// Percent-encode what is special in a password: / is %2F, # is %23, ? is %3F, % is %25. valkey://
// and valkeys:// are the same as redis:// and rediss://. These parameters can follow a question
// mark; Connect refuses any other with [ErrInvalid]:
//
//	addr=host:port       another Sentinel, or another node of the cluster; repeatable
//	master_set=name      the name by which the Sentinels know the master
//	db=0                 the number of the database, if the path does not give it
//	client_name=name     the name of the connections in CLIENT LIST
//	dial_timeout=2s      for opening a connection, TLS included
//	write_timeout=2s     after which a silent connection is closed
//	protocol=2           RESP2, for servers and proxies that do not know RESP3 (protocol=3)
//	skip_verify=true     rediss only: accept any certificate
//
// Connect blocks until the server has answered, until ctx ends, or until one step has failed: each
// connection has the dial timeout (2 s), and so have the questions that Connect asks over it, so a
// failure takes a few seconds at most. Connect does not dial again: repeat the call, or use
// [Options.LazyConnect], with which it needs no server.
//
// If the server cannot be reached or ctx ends, the error matches [ErrUnavailable], and also that of
// ctx if that ended, and says which step failed. If ctx has already ended, nothing is dialed, and
// the error matches only that of ctx. If the server refuses (a wrong password), [errors.As] finds a
// *rueidis.RedisError.
func Connect(ctx context.Context, rawURL string, options Options) (*Client, error) {
	settings, err := connect.ParseURL(rawURL)
	if err != nil {
		return nil, err
	}
	return open(ctx, connect.Redacted(rawURL), settings, options)
}

// Open is [Connect] with the settings of the rueidis library instead of a URL. It is for what a URL
// cannot express: client certificates or your own authority (TLSConfig), passwords that change
// (AuthCredentialsFn), tunnels (DialCtxFn). InitAddress names the server, the nodes, or, with
// Sentinel.MasterSet, the Sentinels.
//
// Open sets what locks need: DisableCache, AlwaysPipelining, a PipelineMultiplex of -1, and, unless
// you set them, the timeouts of Connect, Sentinel.TopologyRefreshInterval and
// ClusterOption.MaxMovedRedirections. If a field contradicts that, Open returns an [ErrInvalid]
// that names it, and dials nothing. docs/reference/options.md lists these fields.
//
// The client calls the functions in settings as long as it lives. Open copies everything else.
func Open(ctx context.Context, settings rueidis.ClientOption, options Options) (*Client, error) {
	return open(ctx, strings.Join(settings.InitAddress, ","), settings, options)
}

// open implements Connect and Open. name identifies the server in errors.
func open(ctx context.Context, name string, settings rueidis.ClientOption, options Options) (*Client, error) {
	options, err := options.complete()
	if err != nil {
		return nil, err
	}
	client, topology, err := connect.Connect(ctx, settings, connect.Config{
		Name: name, Label: options.label(),
		AddressMapper: options.Tuning.AddressMapper, MaxInFlight: options.Tuning.MaxInFlight,
		Lazy: options.LazyConnect, Waits: options.Replicas.Min > 0,
	})
	if err != nil {
		return nil, err
	}
	c, err := newClient(client, options, topology)
	if err != nil {
		client.Close()
	}
	return c, err
}
