package latchkey

import (
	"context"
	"fmt"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// lazily makes a client without dialing.
func lazily(settings rueidis.ClientOption, options Options) (*Client, error) {
	if settings.Sentinel.MasterSet == "" && len(settings.InitAddress) > 1 {
		return nil, fault.Invalid("Options.LazyConnect is for single servers and Sentinel; there are %d addresses and no master_set",
			len(settings.InitAddress))
	}
	t := transport.NewTopology(false, options.withDefaults().MaxInFlight)
	t.MarkBroken() // there is no connection until something is answered
	t.WatchConnections(&settings)
	client, err := transport.NewLazyClient(settings, func() (rueidis.Client, error) { return dialKnown(settings, options) })
	if err != nil {
		return nil, err
	}
	c, err := newClient(client, options, t)
	if err != nil {
		client.Close()
	}
	return c, err
}

// dialKnown dials, and makes the queries that an eager client makes when it is created.
func dialKnown(settings rueidis.ClientOption, options Options) (rueidis.Client, error) {
	single := settings.Sentinel.MasterSet == ""
	settings.ForceSingleClient = single
	client, err := dial(settings)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), transport.DialTimeout)
	defer cancel()
	if single {
		var clustered bool
		if clustered, err = queryCluster(ctx, client); clustered {
			err = errLazyCluster
		}
	}
	if err == nil && options.Replicas.Min > 0 {
		err = core.WaitRefused(transport.TryWait(ctx, client).Error())
	}
	if err != nil {
		client.Close()
		return nil, err
	}
	return client, nil
}

// errLazyCluster is an ErrInvalid that only a query of the server can find. Locks are made before that, and a cluster
// decides their channels: a wrong guess would lose keys of other nodes.
var errLazyCluster = transport.Refusal(fmt.Errorf("%w: Options.LazyConnect is for single servers and Sentinel; "+
	"this server belongs to a cluster, so create its client without LazyConnect", fault.ErrInvalid))
