package latchkey

import (
	"context"
	"errors"
	"strings"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// Connect opens a client for a Redis or Valkey server:
//
//	redis://user:password@host:6379/0     one server, or a cluster by any node
//	rediss://host:6380                    the same with TLS
//	unix:///run/redis.sock?db=0
//	redis://h1:26379?addr=h2:26379&master_set=main    by Sentinel
//
// Percent-encode what is special in a password: / is %2F, # is %23, ? is %3F, % is %25.
// valkey:// and valkeys:// are the same as redis:// and rediss://. Connect detects
// whether the server belongs to a cluster. These parameters can follow a question mark;
// Connect refuses any other with [ErrInvalid]:
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
// Connect blocks until the server has answered, until ctx ends, or until one step has failed:
// each connection has the dial timeout (2 s), and so have the questions that Connect asks over
// it, so a failure takes a few seconds at most. Connect does not dial again, however long ctx
// lasts: repeat the call, or use [Options.LazyConnect], with which Connect does not block and
// needs no server.
//
// If the server cannot be reached or ctx ends, the error matches [ErrUnavailable], and also
// that of ctx if that ended, and says which step failed. If ctx has already ended, nothing is
// dialed, and the error matches only that of ctx. If the server refuses (a wrong password),
// [errors.As] finds a *rueidis.RedisError.
//
// Use [Open] for client certificates, changing credentials, or your own dialer.
func Connect(ctx context.Context, rawURL string, options Options) (*Client, error) {
	settings, err := parseURL(rawURL)
	if err != nil {
		return nil, err
	}
	return open(ctx, redacted(rawURL), settings, options)
}

// Open is [Connect] with the settings of the rueidis library instead of a URL. It is for
// what a URL cannot express: TLSConfig with client certificates or your own authority,
// AuthCredentialsFn for passwords that change, DialCtxFn for tunnels. InitAddress names
// the server, the nodes, or, with Sentinel.MasterSet, the Sentinels.
//
// Open sets what locks need: DisableCache, AlwaysPipelining, a PipelineMultiplex of -1
// (one connection for each server), and, unless you set them, the timeouts of Connect,
// Sentinel.TopologyRefreshInterval and ClusterOption.MaxMovedRedirections. If a field
// contradicts that, Open returns an [ErrInvalid] that names it, and dials nothing.
// docs/reference/options.md lists these fields.
//
// The client calls the functions in settings as long as it lives. Open copies everything
// else: you may change or reuse settings when it returns.
func Open(ctx context.Context, settings rueidis.ClientOption, options Options) (*Client, error) {
	return open(ctx, strings.Join(settings.InitAddress, ","), settings, options)
}

// open implements Connect and Open. name identifies the server in errors.
func open(ctx context.Context, name string, settings rueidis.ClientOption, options Options) (*Client, error) {
	if err := options.withDefaults().check(); err != nil {
		return nil, err
	}
	settings, err := completed(settings)
	if err != nil {
		return nil, err
	}
	settings = named(settings, options.withDefaults().Label)
	var stage transport.DialProgress
	settings.DialCtxFn = stage.Watched(transport.DialOrTCP(settings.DialCtxFn))
	if options.AddressMapper != nil {
		settings.DialCtxFn = transport.MappedDial(settings.DialCtxFn, options.AddressMapper)
	}
	if options.LazyConnect {
		return lazily(settings, options)
	}
	if err := core.EndedBefore(ctx); err != nil {
		return nil, fault.Op("connect", name, err)
	}
	r, err := dialWithin(ctx, settings, options.withDefaults().MaxInFlight)
	switch {
	case fault.IsContextEnd(err):
		return nil, fault.Op("connect", name, fault.ErrUnavailable, stage.Reached(), err)
	case err != nil:
		return nil, fault.Op("connect", name, core.Unanswered(err))
	}
	c, err := newClient(r.client, options, r.topology)
	if err != nil {
		r.client.Close()
	}
	return c, err
}

// opened is a rueidis client with its known connections.
type opened struct {
	client   rueidis.Client
	topology *transport.Topology
	err      error
}

// dialWithin dials until ctx ends, which rueidis ignores.
func dialWithin(ctx context.Context, settings rueidis.ClientOption, inFlight int) (opened, error) {
	done := make(chan opened, 1)
	go func() {
		client, topology, err := dialAny(ctx, settings, inFlight)
		done <- opened{client, topology, err}
	}()
	select {
	case r := <-done:
		return r, r.err
	case <-ctx.Done():
		go func() {
			if r := <-done; r.err == nil {
				r.client.Close()
			}
		}()
		return opened{}, fault.ContextError(ctx)
	}
}

// dialAny dials. It takes a single address for a single server, unless the server says
// that it belongs to a cluster.
func dialAny(ctx context.Context, settings rueidis.ClientOption, inFlight int) (rueidis.Client, *transport.Topology, error) {
	if settings.Sentinel.MasterSet != "" {
		return dialAs(transport.NewTopology(false, inFlight), settings)
	}
	single := settings
	single.ForceSingleClient = true
	client, one, err := dialAs(transport.NewTopology(false, inFlight), single)
	if err == nil {
		var clustered bool
		if clustered, err = inCluster(ctx, client); err == nil && !clustered {
			return client, one, nil
		}
		client.Close()
	}
	if err != nil && len(settings.InitAddress) == 1 {
		return nil, nil, err
	}
	return dialAs(transport.NewTopology(true, inFlight), settings)
}

// dialAs dials a cluster or a single server, and has the topology watch the connections.
func dialAs(t *transport.Topology, settings rueidis.ClientOption) (rueidis.Client, *transport.Topology, error) {
	t.WatchConnections(&settings)
	client, err := dial(settings)
	return client, t, err
}

// inCluster reports whether the server belongs to a cluster. A wrong guess would lose the keys of all other nodes.
func inCluster(ctx context.Context, client rueidis.Client) (clustered bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, transport.DialTimeout)
	defer cancel()
	err = transport.UntilAnswered(ctx, func() error {
		clustered, err = queryCluster(ctx, client)
		return err
	})
	return clustered, err
}

// queryCluster sends HELLO, which needs no permission. To servers that do not know it
// without arguments it sends CLUSTER INFO. A server that refuses both is not in a
// cluster.
func queryCluster(ctx context.Context, client rueidis.Client) (clustered bool, err error) {
	reply := client.Do(ctx, client.B().Arbitrary("HELLO").Build())
	if hello, err := reply.ToMap(); err == nil {
		mode := hello["mode"]
		text, _ := mode.ToString()
		return text == "cluster", nil
	}
	if err := reply.Error(); err != nil && transport.Classify(err) != transport.Refused {
		return false, err
	}
	info, err := client.Do(ctx, client.B().ClusterInfo().Build()).ToString()
	if transport.Classify(err) == transport.Refused {
		return false, nil
	}
	return strings.Contains(info, "cluster_state:"), err
}

// dial dials. If the server refuses names for connections, it dials again without them.
func dial(settings rueidis.ClientOption) (rueidis.Client, error) {
	client, err := rueidis.NewClient(settings)
	if err == nil {
		return client, nil
	}
	if client != nil {
		client.Close()
	}
	if settings.ClientName != "" && namesRefused(err) {
		settings.ClientName, settings.Sentinel.ClientName = "", ""
		return dial(settings)
	}
	return nil, withoutSecrets(err, settings.Password, settings.Sentinel.Password)
}

// withoutSecrets returns an error whose text does not show passwords. A server that does not know a command may repeat
// its arguments.
func withoutSecrets(err error, secrets ...string) error {
	text := err.Error()
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "xxxxx")
		}
	}
	if text == err.Error() {
		return err
	}
	return fault.Sub(text, err)
}

// named sets the names of connections in CLIENT LIST, unless the caller has set them.
func named(settings rueidis.ClientOption, label string) rueidis.ClientOption {
	if label == NoLabel {
		return settings
	}
	setDefault(&settings.ClientName, connectionName(label))
	setDefault(&settings.Sentinel.ClientName, settings.ClientName)
	return settings
}

// namesRefused reports whether CLIENT SETNAME may be why the server refused a connection:
// on servers that do not know HELLO, it needs a permission.
func namesRefused(err error) bool {
	var refusal *rueidis.RedisError
	if !errors.As(err, &refusal) {
		return false
	}
	text := strings.ToLower(refusal.Error())
	return strings.Contains(text, "setname") || strings.Contains(text, "'client") || strings.Contains(text, "`client")
}
