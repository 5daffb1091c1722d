// Package admin has what people and tools ask of a server: which objects and waiters there are, forced releases, and
// whether the server and its permissions will do.
package admin

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/base/fault"
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

// Object is a snapshot of one object. Object of the root explains the fields.
type Object struct {
	inspect.Inspection

	HolderCount int
	Queued      int
	Listeners   int
	Available   int
	Total       int
	Count       int64
}

// LookAtName looks at one name. If there is no such object, the kind is KindNone.
func LookAtName(ctx context.Context, c *core.Parts, name string) (Object, error) {
	names := c.Config.Names(name)
	if names.Invalid != nil {
		return Object{}, fault.Op("object", name, names.Invalid)
	}
	if err := c.Begin(ctx); err != nil {
		return Object{}, fault.Op("object", name, err)
	}
	defer c.Done()
	o, err := lookOnce(ctx, c, names)
	if err != nil {
		return Object{}, fault.Op("object", name, err)
	}
	c.Inspector.Describe(ctx, 0, o.Holders)
	return o, nil
}

// numsub returns the command that counts subscribers.
func numsub(c *core.Parts) string {
	if c.Notifier.Sharded {
		return "SHARDNUMSUB"
	}
	return "NUMSUB"
}

// look looks at names that one master serves, in one round trip. It leaves out keys that are not objects.
func look(ctx context.Context, c *core.Parts, m nodes.Master, names []*keyspace.Keys) ([]Object, error) {
	if len(names) == 0 {
		return nil, nil
	}
	groups := lookGroups(c, names)
	args := []string{numsub(c), lookFields}
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
	var all []Object
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

// readLooks reads the reply about a group. If the server refuses the whole script, because a slot moves or one
// of the keys may not be read, it looks at each name separately.
func readLooks(
	ctx context.Context, c *core.Parts, result rueidis.RedisResult, group []*keyspace.Keys,
) ([]Object, error) {
	refused := result.Error() != nil
	replies, err := result.ToArray()
	if !refused && (err != nil || len(replies) != len(group)) {
		return nil, errors.Join(script.ErrReply, err)
	}
	var all []Object
	for i, each := range group {
		var o Object
		if refused {
			o, err = lookOnce(ctx, c, each)
		} else {
			o, err = readLook(each, replies[i])
		}
		if err != nil {
			return nil, err
		}
		if o.is() {
			all = append(all, o)
		}
	}
	return all, nil
}

// is reports whether o is an object, and not another key that belongs to one.
func (o *Object) is() bool {
	return o.Kind != keyspace.KindNone && o.Kind != keyspace.KindUnknown && !o.isDerived()
}

// derived maps the prefixes of keys that belong to an object, and could be taken for one, to whether such a key
// is a hash. A key of the other type is not derived.
var derived = map[string]bool{
	"redisson_lock_token": false, "redisson_unlock_latch": false, "redisson_bqs": false,
	"latchkey_sc_total": false, "latchkey_sc_bar": false, "latchkey_op": false, "latchkey_permit_void": false,
	"latchkey_sc_grants": true, "latchkey_fair": true, "latchkey_rw": true, "latchkey_latch": true,
}

var readLease = regexp.MustCompile(`:rwlock_timeout:[0-9]+$`)

// isDerived reports whether the key, by its name and its type, belongs to an object.
func (o *Object) isDerived() bool {
	isHash := o.Kind == keyspace.KindLock || o.Kind == keyspace.KindRWLock
	if !isHash && strings.Contains(o.Key, "{") && readLease.MatchString(o.Key) {
		return true
	}
	first, rest, _ := strings.Cut(o.Key, ":")
	hash, is := derived[first]
	return is && hash == isHash && strings.Contains(rest, "{")
}

// lookOnce looks at one name.
func lookOnce(ctx context.Context, c *core.Parts, names *keyspace.Keys) (Object, error) {
	a, err := c.Send(ctx, script.NewCall(script.Look, names.LookKeys(), numsub(c), lookFields))
	if err != nil {
		return Object{}, err
	}
	replies, err := a.Message.ToArray()
	if err != nil || len(replies) != 1 {
		return Object{}, errors.Join(script.ErrReply, err)
	}
	return readLook(names, replies[0])
}

// readLook reads the reply of lua/look/objects.lua about one object.
func readLook(names *keyspace.Keys, reply rueidis.RedisMessage) (Object, error) {
	o := Object{Inspection: inspect.Inspection{Name: names.Name, Key: names.Key, Kind: keyspace.KindNone}}
	if reply.IsNil() {
		return o, nil
	}
	parts, err := reply.ToArray()
	if err != nil || len(parts) < 7 {
		return o, errors.Join(script.ErrReply, err)
	}
	numbers := [3]int64{}
	for i := range numbers {
		var each error
		numbers[i], each = parts[4+i].AsInt64()
		err = errors.Join(err, each)
	}
	if err = errors.Join(err, o.ReadParts(parts)); err != nil {
		return o, err
	}
	o.HolderCount, o.Queued, o.Listeners = len(o.Holders), int(numbers[1]), int(numbers[2])
	if fields := int(numbers[0]); fields > lookedAt(parts[3]) {
		o.HolderCount = fields
		if o.Kind == keyspace.KindRWLock {
			o.HolderCount-- // the mode
		}
	}
	switch {
	case o.Kind == keyspace.KindNumber && len(parts) == 11:
		err = o.readNumber(parts)
	case o.Kind == keyspace.KindBarrier:
		err = o.readBarrier(parts[3])
	}
	return o, err
}

// lookedAt returns how many fields of a hash the reply has.
func lookedAt(content rueidis.RedisMessage) int {
	list, _ := content.ToArray()
	return len(list) / 2
}

// readBarrier reads how many parties a barrier has, and how many it still waits for.
func (o *Object) readBarrier(content rueidis.RedisMessage) error {
	fields, err := content.AsStrMap()
	parties, bad := strconv.Atoi(cmp.Or(fields["parties"], "0"))
	o.Total, o.Count = parties, int64(max(parties-o.Queued, 0))
	if err = errors.Join(err, bad); err != nil {
		return errors.Join(script.ErrReply, err)
	}
	return nil
}

// readNumber distinguishes a semaphore from a latch.
func (o *Object) readNumber(parts []rueidis.RedisMessage) error {
	content, _ := parts[3].AsStrSlice()
	held, err1 := parts[8].AsInt64()
	over, err2 := parts[9].AsInt64()
	what, err3 := parts[10].ToString()
	n, err4 := strconv.ParseInt(content[0], 10, 64)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return errors.Join(script.ErrReply, err)
	}
	if keyspace.Kind(what) != keyspace.KindSemaphore {
		o.Kind, o.Count = cmp.Or(keyspace.Kind(what), keyspace.KindNumber), n
		o.What = keyspace.Noun(o.Kind)
		return nil
	}
	o.Kind, o.What = keyspace.KindSemaphore, keyspace.Noun(keyspace.KindSemaphore)
	o.Available, o.HolderCount = int(n+over), int(held)
	o.Total = o.Available + o.HolderCount
	if total, err := parts[7].AsInt64(); err == nil && held == 0 {
		o.Total, o.HolderCount = int(total), int(total)-o.Available
	}
	return nil
}
