// Package latchkeygoredis opens a Latchkey client with the settings of a go-redis client
// (github.com/redis/go-redis/v9, v9.22 or newer), for the same server, cluster or Sentinels:
//
//	data := redis.NewClient(&redis.Options{Addr: "redis:6379", DB: 2})
//	client, err := latchkeygoredis.Open(ctx, data.Options(), latchkey.Options{})
//
// The two clients share no connection. See docs/howto/go-redis.md for what that costs, and for what
// each client must not touch.
//
// # Converted
//
// Addr, Network, Addrs, SentinelAddrs, MasterName, IsClusterMode, DB, Username, Password,
// SentinelUsername, SentinelPassword, CredentialsProvider, CredentialsProviderContext,
// StreamingCredentialsProvider, TLSConfig, Dialer, DialTimeout, Protocol, and ClientName, to which
// "-locks" is added.
//
// A DialTimeout of 0 means 2 s for Latchkey, and 5 s for go-redis, which enters that in the Options
// of an existing client. A Dialer opens all connections, those to Sentinels too, and does the TLS
// itself, as in go-redis.
//
// Providers of credentials are called for each connection, CredentialsProviderContext with a
// context that ends after 5 s. A StreamingCredentialsProvider gets one subscription for the client,
// for as long as the program runs. Open connections authenticate every minute with the newest
// credentials that it has sent; OnError has no effect.
//
// # Refused
//
// These settings return an error that matches [latchkey.ErrInvalid] and says what to do:
//
//   - OnConnect: Latchkey cannot call it, and it may change what a connection does. If locks do not
//     need it, clear it in a copy of the settings.
//   - ClusterSlots, and so the Options of a client made by NewFailoverClusterClient: locks need the
//     slots that the cluster itself reports, or Sentinels.
//   - the Options of a client made by NewFailoverClient, which do not name the Sentinels. Pass the
//     FailoverOptions.
//   - a provider of credentials with Sentinels, because they would receive the credentials too.
//     Clear it in a copy, and set AuthCredentialsFn in the result of [ClientOption] to a function
//     that tells a Sentinel by the Address in its argument.
//
// A redis.Ring has no counterpart: its servers are independent. Open a client for each.
//
// # Ignored
//
// Locks need no pool: PoolSize, PoolFIFO, PoolTimeout, MinIdleConns, MaxIdleConns, MaxActiveConns,
// MaxConcurrentDials, ConnMaxIdleTime, ConnMaxLifetime, ConnMaxLifetimeJitter, ReadBufferSize,
// WriteBufferSize, PipelineReadBufferSize, PipelineWriteBufferSize, PipelinePoolSize,
// AutoPipelineOptions, Limiter.
//
// Contexts and [latchkey.Options.RetryBudget] limit calls: ReadTimeout, WriteTimeout,
// ContextTimeoutEnabled, MaxRetries, MinRetryBackoff, MaxRetryBackoff, DialerRetries,
// DialerRetryTimeout, DialerRetryBackoff.
//
// Locks live on the master and are not cached: ReadOnly, ReplicaOnly, RouteByLatency,
// RouteRandomly, UseDisconnectedReplicas, ClientSideCache, ClientSideCacheConfig,
// ClientSideCacheStrategy.
//
// Latchkey finds and watches the nodes by itself: MaxRedirects, ClusterStateReloadInterval,
// ShardPicker, DisableRoutingPolicies, NodeAddress, FailingTimeoutSeconds,
// MaintNotificationsConfig, PushNotificationProcessor, and NewClient, which every existing cluster
// client has.
//
// The rest: DisableIdentity, DisableIndentity, IdentitySuffix, UnstableResp3.
package latchkeygoredis
