// Package admin has what people and tools ask of a server: which objects and waiters there are,
// forced releases, and whether the server and its permissions will do.
package admin

import (
	"context"
	"errors"
	"regexp"
	"strings"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/inspect"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport"
	"github.com/latchkey-go/latchkey/internal/transport/nodes"
)

const (
	// lookBatch is how many objects one script looks at.
	lookBatch = 64
	// lookFields is how many fields of a hash the script returns.
	lookFields = "65" // 64 owners and the mode
)

// look looks at names that one master serves, in one round trip. It leaves out keys that are not
// objects.
func look(ctx context.Context, c *core.Parts, m nodes.Master, names []*keyspace.Keys) ([]inspect.Object, error) {
	if len(names) == 0 {
		return nil, nil
	}
	groups := lookGroups(c, names)
	args := []string{c.Inspector.Numsub, lookFields}
	loads := make([]transport.Load, len(groups))
	for i, group := range groups {
		loads[i].Args = args
		for _, each := range group {
			loads[i].Keys = append(loads[i].Keys, each.LookKeys()...)
		}
	}
	results, err := c.Sender.SendEach(ctx, c.Closing, m, script.Look, loads)
	if err != nil {
		return nil, err
	}
	var all []inspect.Object
	for i, group := range groups {
		found, err := readLooks(ctx, c, results[i], group)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// lookGroups groups the names for one script each: in a cluster, the names of one slot.
func lookGroups(c *core.Parts, names []*keyspace.Keys) (groups [][]*keyspace.Keys) {
	open := map[uint16]int{}
	for _, each := range names {
		slot := c.Topology.SlotOf(each.Key)
		at, begun := open[slot]
		if !begun || len(groups[at]) == lookBatch {
			at = len(groups)
			open[slot] = at
			groups = append(groups, nil)
		}
		groups[at] = append(groups[at], each)
	}
	return groups
}

// readLooks reads the reply about a group. If the server refuses the whole script, because a slot
// moves or one of the keys may not be read, it looks at each name separately.
func readLooks(
	ctx context.Context, c *core.Parts, result rueidis.RedisResult, group []*keyspace.Keys,
) ([]inspect.Object, error) {
	refused := result.Error() != nil
	replies, err := result.ToArray()
	if !refused && (err != nil || len(replies) != len(group)) {
		return nil, errors.Join(script.ErrReply, err)
	}
	var all []inspect.Object
	for i, each := range group {
		var o inspect.Object
		if refused {
			o, err = c.Inspector.Find(ctx, each)
		} else {
			o, err = inspect.Read(each, replies[i])
		}
		if err != nil {
			return nil, err
		}
		if isObject(&o) {
			all = append(all, o)
		}
	}
	return all, nil
}

// isObject reports whether o is an object, and not another key that belongs to one.
func isObject(o *inspect.Object) bool {
	return o.Kind != keyspace.KindNone && o.Kind != keyspace.KindUnknown && !isDerived(o)
}

// derived maps the prefixes of keys that belong to an object, and could be taken for one, to
// whether such a key is a hash. A key of the other type is not derived.
var derived = map[string]bool{
	"redisson_lock_token": false, "redisson_unlock_latch": false, "redisson_bqs": false,
	"latchkey_sc_total": false, "latchkey_sc_bar": false, "latchkey_op": false, "latchkey_permit_void": false,
	"latchkey_sc_grants": true, "latchkey_fair": true, "latchkey_rw": true, "latchkey_latch": true,
}

var readLease = regexp.MustCompile(`:rwlock_timeout:[0-9]+$`)

// isDerived reports whether the key, by its name and its type, belongs to an object.
func isDerived(o *inspect.Object) bool {
	isHash := o.Kind == keyspace.KindLock || o.Kind == keyspace.KindRWLock
	if !isHash && strings.Contains(o.Key, "{") && readLease.MatchString(o.Key) {
		return true
	}
	first, rest, _ := strings.Cut(o.Key, ":")
	hash, is := derived[first]
	return is && hash == isHash && strings.Contains(rest, "{")
}
