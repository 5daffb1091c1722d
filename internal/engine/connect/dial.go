// Package connect opens the connections of a client: to a single server, to a cluster, by Sentinel,
// or with the first command. A borrowed client, which has connections, is kept from staying with a
// server that is no longer the master.
package connect

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/transport"
	"github.com/latchkey-go/latchkey/internal/transport/nodes"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// Config is what matters of the options of a client for its connections.
type Config struct {
	Name          string // of the server, in errors
	Label         string // of the client, or "" if the connections shall have no names
	AddressMapper func(addr string) string
	MaxInFlight   int
	Lazy          bool // it does not dial before the first command
	Waits         bool // the server must know WAIT
}

// Connect makes a rueidis client with known connections. Unless it is lazy, it has dialed.
func Connect(
	ctx context.Context, settings rueidis.ClientOption, config Config,
) (rueidis.Client, *nodes.Topology, error) {
	settings, err := Completed(settings)
	if err != nil {
		return nil, nil, err
	}
	if settings.DialCtxFn == nil && config.AddressMapper == nil { // else an address may be anything
		if err := checkAddresses(settings.InitAddress); err != nil {
			return nil, nil, err
		}
	}
	settings = named(settings, config.Label)
	var stage dialProgress
	settings.DialCtxFn = stage.watched(dialOrTCP(settings.DialCtxFn))
	if config.AddressMapper != nil {
		settings.DialCtxFn = mappedDial(settings.DialCtxFn, config.AddressMapper)
	}
	if config.Lazy {
		return lazily(settings, config)
	}
	if err := outcome.EndedBefore(ctx); err != nil {
		return nil, nil, fault.Op("connect", config.Name, err)
	}
	r, err := dialWithin(ctx, settings, config.MaxInFlight)
	switch {
	case fault.IsContextEnd(err):
		return nil, nil, fault.Op("connect", config.Name, fault.ErrUnavailable, stage.reached(), err)
	case err != nil:
		return nil, nil, fault.Op("connect", config.Name, outcome.Unanswered(err))
	}
	return r.client, r.topology, nil
}

// opened is the outcome of dialing.
type opened struct {
	client   rueidis.Client
	topology *nodes.Topology
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
func dialAny(
	ctx context.Context, settings rueidis.ClientOption, inFlight int,
) (rueidis.Client, *nodes.Topology, error) {
	if settings.Sentinel.MasterSet != "" {
		return dialAs(nodes.NewTopology(false, inFlight), settings)
	}
	single := settings
	single.ForceSingleClient = true
	client, one, err := dialAs(nodes.NewTopology(false, inFlight), single)
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
	return dialAs(nodes.NewTopology(true, inFlight), settings)
}

// dialAs dials a cluster or a single server, and has the topology watch the connections.
func dialAs(t *nodes.Topology, settings rueidis.ClientOption) (rueidis.Client, *nodes.Topology, error) {
	t.WatchConnections(&settings)
	client, err := dial(settings)
	return client, t, err
}

// inCluster reports whether the server belongs to a cluster. A wrong guess would lose the keys of
// all other nodes.
func inCluster(ctx context.Context, client rueidis.Client) (clustered bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, nodes.DialTimeout)
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
	if err := reply.Error(); err != nil && outcome.Classify(err) != outcome.Refused {
		return false, err
	}
	info, err := client.Do(ctx, client.B().ClusterInfo().Build()).ToString()
	if outcome.Classify(err) == outcome.Refused {
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

// withoutSecrets returns an error whose text does not show passwords. A server that does not know a
// command may repeat its arguments.
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

// named sets the names of connections in CLIENT LIST, unless the caller has set them or label is
// "".
func named(settings rueidis.ClientOption, label string) rueidis.ClientOption {
	if label == "" {
		return settings
	}
	settings.ClientName = cmp.Or(settings.ClientName, connectionName(label))
	settings.Sentinel.ClientName = cmp.Or(settings.Sentinel.ClientName, settings.ClientName)
	return settings
}

// connectionName is a label as CLIENT LIST shows it. Only ASCII without blanks is allowed there.
func connectionName(label string) string {
	return "latchkey:" + strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return '_'
		}
		return r
	}, label)
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
