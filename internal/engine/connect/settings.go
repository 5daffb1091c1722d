package connect

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/transport/nodes"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// Settings of the connections, unless the caller sets them. Two more are in transport.
const (
	keepAlive       = 2 * time.Second // idle time of a connection before rueidis pings it
	topologyRefresh = 2 * time.Second // how often the client queries Sentinel for the master
	maxRedirections = 8               // of one command: nodes that disagree could redirect it forever
)

// Limits for settings of the caller. rueidis queues 2 to the power of ringScale commands
// on a connection, more than Tuning.MaxInFlight can be. The pool is for subscriptions and for
// commands that wait for replicas.
const (
	ringScale    = 10
	leastPooling = 64
)

// connBuffer is the size of each of the two buffers of a connection, unless the caller sets it.
// Commands and replies of locks have a few hundred bytes. The default of rueidis is eight times as
// large.
const connBuffer = 64 << 10

// Completed checks the caller's settings and adds what locks need.
func Completed(settings rueidis.ClientOption) (rueidis.ClientOption, error) {
	if len(settings.InitAddress) == 0 || slices.Contains(settings.InitAddress, "") {
		return settings, fault.Invalid("ClientOption.InitAddress names no server; want host:port")
	}
	for _, c := range conflicts(&settings) {
		if c.set {
			return settings, fault.Invalid("ClientOption.%s: %s", c.field, c.why)
		}
	}
	settings.InitAddress = slices.Clone(settings.InitAddress) // rueidis may shuffle it
	settings.Dialer.Timeout = cmp.Or(settings.Dialer.Timeout, nodes.DialTimeout)
	settings.Dialer.KeepAlive = cmp.Or(settings.Dialer.KeepAlive, keepAlive)
	settings.Sentinel.Dialer.Timeout = cmp.Or(settings.Sentinel.Dialer.Timeout, settings.Dialer.Timeout)
	settings.ConnWriteTimeout = cmp.Or(settings.ConnWriteTimeout, nodes.SilenceTimeout)
	settings.ReadBufferEachConn = cmp.Or(settings.ReadBufferEachConn, connBuffer)
	settings.WriteBufferEachConn = cmp.Or(settings.WriteBufferEachConn, connBuffer)
	sentinel, cluster := &settings.Sentinel, &settings.ClusterOption
	sentinel.TopologyRefreshInterval = cmp.Or(sentinel.TopologyRefreshInterval, topologyRefresh)
	cluster.MaxMovedRedirections = cmp.Or(cluster.MaxMovedRedirections, maxRedirections)
	settings.AuthCredentialsFn = wrapCredentials(settings.AuthCredentialsFn)
	// One connection for all commands keeps the commands of one key in order, so that a
	// clean-up does not overtake the command that it cleans up. Pipelining is always on,
	// because a connection that only one caller uses at a time is closed at that caller's
	// deadline.
	settings.PipelineMultiplex = -1
	settings.AlwaysPipelining = true
	settings.DisableCache = true
	return settings, nil
}

// checkAddresses refuses addresses that cannot be dialed. A port may be the name of a service.
func checkAddresses(addresses []string) error {
	for _, address := range addresses {
		_, port, err := net.SplitHostPort(address)
		number, outOfRange := strconv.ParseUint(port, 10, 16)
		isNumber := strings.Trim(port, "0123456789") == ""
		if err != nil || isNumber && (outOfRange != nil || number == 0) {
			return fault.Invalid("the address %q is not host:port with a port from 1 to 65535", address)
		}
	}
	return nil
}

// conflict is a field whose value locks cannot work with.
type conflict struct {
	field string
	set   bool
	why   string
}

// conflicts lists the fields that the caller must not set, or not to these values.
func conflicts(s *rueidis.ClientOption) []conflict {
	const (
		cache    = "client-side caching is off, because locks must not be cached"
		replicas = "locks are decided on the master only"
		order    = "locks need one connection for each server, which keeps commands in order"
		negative = "it must not be negative"
	)
	return []conflict{
		{"DialFn", s.DialFn != nil, "use DialCtxFn"},
		{"NewCacheStoreFn", s.NewCacheStoreFn != nil, cache},
		{"OnInvalidations", s.OnInvalidations != nil, cache},
		{"ClientTrackingOptions", s.ClientTrackingOptions != nil, cache},
		{"CacheSizeEachConn", s.CacheSizeEachConn != 0, cache},
		{"SendToReplicas", s.SendToReplicas != nil, replicas},
		{"ReplicaSelector", s.ReplicaSelector != nil, replicas}, //nolint:staticcheck // deprecated, refused
		{"ReadNodeSelector", s.ReadNodeSelector != nil, replicas},
		{"ReplicaOnly", s.ReplicaOnly, replicas},
		{"Standalone.ReplicaAddress", len(s.Standalone.ReplicaAddress) > 0, replicas},
		{"Standalone.EnableRedirect", s.Standalone.EnableRedirect, "redirections of a single server are not followed"},
		{"PipelineMultiplex", s.PipelineMultiplex > 0, order},
		{"DisableAutoPipelining", s.DisableAutoPipelining, order},
		{"ConnLifetime", s.ConnLifetime != 0, "commands in flight at its end would be sent again"},
		{"ForceSingleClient", s.ForceSingleClient, "Open detects by itself whether the server belongs to a cluster"},
		{"RingScaleEachConn", s.RingScaleEachConn != 0 && s.RingScaleEachConn < ringScale,
			"below 10, callers would wait for each other past their deadlines"},
		{"BlockingPoolSize", s.BlockingPoolSize != 0 && s.BlockingPoolSize < leastPooling,
			"below 64 there may be no connection for subscriptions and Options.Replicas"},
		{"AuthCredentialsFn", s.AuthCredentialsFn != nil && (s.Username != "" || s.Password != ""),
			"it excludes Username and Password"},
		{"Dialer.Timeout", s.Dialer.Timeout < 0, negative},
		{"Dialer.KeepAlive", s.Dialer.KeepAlive < 0, negative + ": a silent server would not be noticed"},
		{"ConnWriteTimeout", s.ConnWriteTimeout < 0, negative + ": a silent server would not be noticed"},
		{"Sentinel.Dialer.Timeout", s.Sentinel.Dialer.Timeout < 0, negative},
		{"Sentinel.TopologyRefreshInterval", s.Sentinel.TopologyRefreshInterval < 0, negative},
		{"ClusterOption.MaxMovedRedirections", s.ClusterOption.MaxMovedRedirections < 0, negative},
		{"ClusterOption.ShardsRefreshInterval", s.ClusterOption.ShardsRefreshInterval < 0, negative},
	}
}

// credentialsFunc gives rueidis the credentials for a connection.
type credentialsFunc = func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error)

// wrapCredentials returns auth with its errors marked to say that nothing has been sent.
func wrapCredentials(auth credentialsFunc) credentialsFunc {
	if auth == nil {
		return nil
	}
	return func(where rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
		credentials, err := auth(where)
		if err != nil {
			err = outcome.Unopened(fmt.Errorf("AuthCredentialsFn: %w", err))
		}
		return credentials, err
	}
}
