package connect

import (
	"context"
	"fmt"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/transport"
	"github.com/latchkey-go/latchkey/internal/transport/nodes"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// lazily is Connect without dialing.
func lazily(settings rueidis.ClientOption, config Config) (rueidis.Client, *nodes.Topology, error) {
	if settings.Sentinel.MasterSet == "" && len(settings.InitAddress) > 1 {
		return nil, nil, fault.Invalid("Options.LazyConnect is for single servers and Sentinel; "+
			"there are %d addresses and no master_set", len(settings.InitAddress))
	}
	t := nodes.NewTopology(false, config.MaxInFlight)
	t.MarkBroken() // there is no connection until something is answered
	t.WatchConnections(&settings)
	client, err := newLazyClient(settings, func() (rueidis.Client, error) {
		return dialKnown(settings, config.Waits)
	})
	return client, t, err
}

// dialKnown dials, and makes the queries that an eager client makes when it is created: of WAIT
// only if it waits.
func dialKnown(settings rueidis.ClientOption, waits bool) (rueidis.Client, error) {
	single := settings.Sentinel.MasterSet == ""
	settings.ForceSingleClient = single
	client, err := dial(settings)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), nodes.DialTimeout)
	defer cancel()
	if single {
		var clustered bool
		if clustered, err = queryCluster(ctx, client); clustered {
			err = errLazyCluster
		}
	}
	if err == nil && waits {
		err = transport.CheckWait(ctx, client)
	}
	if err != nil {
		client.Close()
		return nil, err
	}
	return client, nil
}

// errLazyCluster is an ErrInvalid that only a query of the server can find. Locks are made before
// that, and a cluster decides their channels: a wrong guess would lose keys of other nodes.
var errLazyCluster = outcome.Refusal(fmt.Errorf("%w: Options.LazyConnect is for single servers and Sentinel; "+
	"this server belongs to a cluster, so create its client without LazyConnect", fault.ErrInvalid))
