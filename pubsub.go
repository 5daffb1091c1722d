package latchkey

// ShardedPubSub says whether messages travel by the sharded commands of Redis 7.
type ShardedPubSub int

const (
	// ShardedAuto uses sharded messages on a cluster whose servers know them, and
	// classic ones everywhere else: the rule that Redisson follows.
	ShardedAuto ShardedPubSub = iota
	// ShardedOn uses sharded messages on every cluster.
	ShardedOn
	// ShardedOff uses classic messages everywhere, for a Redisson fleet that is forced to use them.
	ShardedOff
)
