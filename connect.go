package latchkey

import (
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// Settings of the connections that Connect opens, unless the URL says otherwise.
const (
	dialTimeout     = 2 * time.Second
	keepAlive       = time.Second
	silenceTimeout  = 2 * time.Second // after which a connection counts as broken
	topologyRefresh = 2 * time.Second // how often Sentinel is asked for the master
	maxRedirections = 8               // of one command: nodes that disagree send it round for ever
)

// Connect opens a client for a Redis or Valkey server:
//
//	redis://user:password@host:6379/0     one server, or a cluster by any node
//	rediss://host:6380                    the same with TLS
//	unix:///run/redis.sock?db=0
//	redis://h1:26379?addr=h2:26379&master_set=main    by Sentinel
//
// Whether a server belongs to a cluster is found out. The parameters dial_timeout,
// write_timeout, client_name, protocol=2 and skip_verify are understood.
//
// Connect returns when the server has answered, when ctx ends, or when the server
// cannot be reached, after the dial timeout (2 s).
func Connect(ctx context.Context, rawURL string, options Options) (*Client, error) {
	settings, err := connectSettings(rawURL, options)
	if err != nil {
		return nil, err
	}
	type opened struct {
		client   rueidis.Client
		topology *topology
		err      error
	}
	done := make(chan opened, 1)
	go func() {
		client, topology, err := open(ctx, settings, options.withDefaults().MaxInFlight)
		done <- opened{client, topology, err}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			return nil, fail("connect", redacted(rawURL), r.err)
		}
		c, err := newClient(r.client, options, r.topology)
		if err != nil {
			r.client.Close()
		}
		return c, err
	case <-ctx.Done():
		go func() {
			if r := <-done; r.err == nil {
				r.client.Close()
			}
		}()
		return nil, fail("connect", redacted(rawURL), contextError(ctx))
	}
}

// connectSettings checks everything that can be checked before anything is dialed.
func connectSettings(rawURL string, o Options) (rueidis.ClientOption, error) {
	if err := o.withDefaults().check(); err != nil {
		return rueidis.ClientOption{}, err
	}
	settings, err := parseURL(rawURL)
	if o.AddressMapper != nil {
		settings.DialCtxFn = mappedDial(settings.DialCtxFn, o.AddressMapper)
	}
	return settings, err
}

// parseURL reads what rueidis reads, and refuses what rueidis would misread.
func parseURL(rawURL string) (rueidis.ClientOption, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return rueidis.ClientOption{}, invalid("the URL cannot be parsed")
	}
	if strings.Contains(u.Host, ",") {
		return rueidis.ClientOption{}, invalid("the URL %q names several hosts; give the others as ?addr=host:port", redacted(rawURL))
	}
	if u.Scheme != "unix" {
		u.Path = strings.TrimSuffix(u.Path, "/")
	}
	settings, err := rueidis.ParseURL(u.String())
	if err != nil {
		return settings, invalid("the URL %q: %v", redacted(rawURL), err)
	}
	setDefault(&settings.Dialer.Timeout, dialTimeout)
	setDefault(&settings.Dialer.KeepAlive, keepAlive)
	setDefault(&settings.ConnWriteTimeout, silenceTimeout)
	settings.Sentinel.TopologyRefreshInterval = topologyRefresh
	settings.ClusterOption.MaxMovedRedirections = maxRedirections
	// One connection for all commands keeps those of one key in order, so that a
	// clean-up does not overtake what it cleans up. Pipelining always, because a
	// connection that is used by one caller at a time is closed at that caller's
	// deadline.
	settings.PipelineMultiplex = -1
	settings.AlwaysPipelining = true
	settings.DisableCache = true
	return settings, nil
}

// open dials. A single address is taken for a single server, unless that says that
// it belongs to a cluster.
func open(ctx context.Context, settings rueidis.ClientOption, inFlight int) (rueidis.Client, *topology, error) {
	if settings.Sentinel.MasterSet != "" {
		return dialAs(newTopology(false, inFlight), settings)
	}
	single := settings
	single.ForceSingleClient = true
	client, one, err := dialAs(newTopology(false, inFlight), single)
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
	return dialAs(newTopology(true, inFlight), settings)
}

// dialAs dials what is or is not a cluster, and has the topology notice the connections.
func dialAs(t *topology, settings rueidis.ClientOption) (rueidis.Client, *topology, error) {
	t.watch(&settings)
	client, err := dial(settings)
	return client, t, err
}

// inCluster reports whether the server belongs to a cluster. One that is in trouble is
// asked again for a while, since a wrong guess would lose the keys of all other nodes.
func inCluster(ctx context.Context, client rueidis.Client) (clustered bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	for pause := firstPause; ; pause = min(2*pause, longPause) {
		clustered, err = askForCluster(ctx, client)
		if err == nil || judge(err) == refused || rest(ctx, nil, pause) != nil {
			return clustered, err
		}
	}
}

// askForCluster asks HELLO, which no permission is needed for. Servers that do not know
// it without arguments are asked in another way, and one that refuses both is none.
func askForCluster(ctx context.Context, client rueidis.Client) (clustered bool, err error) {
	reply := client.Do(ctx, client.B().Arbitrary("HELLO").Build())
	if hello, err := reply.ToMap(); err == nil {
		mode := hello["mode"]
		text, _ := mode.ToString()
		return text == "cluster", nil
	}
	if err := reply.Error(); judge(err) != answered && judge(err) != refused {
		return false, err
	}
	info, err := client.Do(ctx, client.B().ClusterInfo().Build()).ToString()
	if judge(err) == refused {
		return false, nil
	}
	return strings.Contains(info, "cluster_state:"), err
}

func dial(settings rueidis.ClientOption) (rueidis.Client, error) {
	client, err := rueidis.NewClient(settings)
	if err != nil && client != nil {
		client.Close()
	}
	return client, err
}

// redacted is a URL without its password, for error messages.
func redacted(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return "?"
	}
	return u.Redacted()
}
