package latchkey

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// Inspection is what stood under a name at one moment.
type Inspection struct {
	Name string
	Key  string // as it is in Redis
	// Kind is KindMutex, KindLock (which re-entrant, fenced and spin locks share),
	// KindRWLock, KindNone for a free lock, or KindUnknown for anything else.
	Kind    Kind
	TTL     time.Duration // 0 when free, NoExpiry if the key does not expire
	Holders []Holder      // in the order of their owners
	Token   int64         // the last fencing token issued under the name, 0 if none
}

// Holder is an owner that holds a lock, and how often it has entered.
type Holder struct {
	Owner string
	Count int
	Write bool // of a read/write lock: it writes; an owner that does both is there twice
}

// Locked reports whether anybody holds the lock.
func (i Inspection) Locked() bool { return i.Kind != KindNone && i.Kind != "" }

// Inspect tells what stands under a name, whatever kind of lock it is. The server
// that decides about the lock is asked, never a replica.
func (c *Client) Inspect(ctx context.Context, name string) (Inspection, error) {
	names, err := c.options.keysOf(name)
	if err != nil {
		return Inspection{}, fail("inspect", name, err)
	}
	i, err := c.inspect(ctx, names)
	if err != nil {
		return i, fail("inspect", name, err)
	}
	return i, nil
}

// ForceUnlock frees the lock of that name whoever holds it and whichever kind of
// exclusive lock it is, as [Locker.ForceUnlock] does. A key that is no such lock is
// an ErrWrongKind and stays as it is.
func (c *Client) ForceUnlock(ctx context.Context, name string) (bool, error) {
	names, err := c.options.keysOf(name)
	if err != nil {
		return false, fail("force unlock", name, err)
	}
	return c.forceUnlock(ctx, names, nil)
}

// Inspect is part of [Locker].
func (p *primitive) Inspect(ctx context.Context) (Inspection, error) {
	if p.invalid != nil {
		return Inspection{}, fail("inspect", p.name, p.invalid)
	}
	i, err := p.client.inspect(ctx, p.keys)
	if err == nil && i.Locked() && i.Kind != p.kind.stored {
		err = ErrWrongKind
	}
	if err != nil {
		return i, fail("inspect", p.name, err)
	}
	return i, nil
}

// ForceUnlock is part of [Locker].
func (p *primitive) ForceUnlock(ctx context.Context) (bool, error) {
	if p.invalid != nil {
		return false, fail("force unlock", p.name, p.invalid)
	}
	return p.client.forceUnlock(ctx, p.keys, p.kind)
}

// inspect asks the server.
func (c *Client) inspect(ctx context.Context, names keys) (Inspection, error) {
	i := Inspection{Name: names.name, Key: names.key}
	if !c.begin() {
		return i, ErrClosed
	}
	defer c.working.Done()
	a, err := c.caller.call(ctx, c.closing, inspectQuery, []string{names.key, names.token}, nil)
	if err != nil {
		return i, err
	}
	return i, i.read(a.message)
}

// read takes the reply of inspect.lua apart.
func (i *Inspection) read(reply rueidis.RedisMessage) error {
	parts, err := reply.ToArray()
	if err != nil || len(parts) != 4 {
		return errors.Join(errReply, err)
	}
	kind, err1 := parts[0].ToString()
	ttl, err2 := parts[1].AsInt64()
	content, err3 := parts[3].AsStrSlice()
	if err := errors.Join(err1, err2, err3); err != nil {
		return errors.Join(errReply, err)
	}
	if !parts[2].IsNil() {
		i.Token, _ = parts[2].AsInt64()
	}
	i.TTL = remaining(ttl)
	i.Kind, i.Holders = holders(kind, content)
	if i.TTL == NoExpiry && !i.ownedByClient() {
		// A lock always expires. A string or a hash that does not is most likely
		// data of an application, unless it names an owner of the known shape.
		i.Kind = KindUnknown
	}
	return nil
}

// ownedByClient reports whether the only holder is an owner as clients make them.
func (i *Inspection) ownedByClient() bool {
	if i.Kind != KindLock && i.Kind != KindRWLock {
		return false
	}
	for _, h := range i.Holders {
		if _, err := ParseOwner(strings.TrimSuffix(h.Owner, ":write")); err != nil {
			return false
		}
	}
	return true
}

var errReply = errors.New("latchkey: reply not understood")

// remaining turns PTTL into a duration.
func remaining(ms int64) time.Duration {
	switch {
	case ms == -1:
		return NoExpiry
	case ms < 0:
		return 0
	}
	return fromMillis(ms)
}

// fromMillis is a duration of ms, or the longest that there is.
func fromMillis(ms int64) time.Duration {
	if ms > int64((NoExpiry-1)/time.Millisecond) {
		return NoExpiry - 1
	}
	return time.Duration(ms) * time.Millisecond
}

// holders reads who holds a lock from the content of its key.
func holders(kind string, content []string) (Kind, []Holder) {
	switch {
	case kind == "none":
		return KindNone, nil
	case kind == "string" && len(content) == 1:
		return KindMutex, []Holder{{Owner: content[0], Count: 1}}
	case kind != "hash" || len(content) == 0:
		return KindUnknown, nil
	}
	found := KindLock
	var list []Holder
	for pair := range slices.Chunk(content, 2) {
		field, value := pair[0], pair[1]
		switch count, ok := parseCount(value); {
		case field == "mode":
			found = KindRWLock
		case strings.Contains(field, "@"):
			// The part of a guest, which the owner's own field includes.
		case !ok:
			return KindUnknown, nil
		default:
			list = append(list, Holder{Owner: field, Count: count})
		}
	}
	if found == KindRWLock {
		markWriters(list)
	}
	slices.SortFunc(list, func(a, b Holder) int { return strings.Compare(a.Owner, b.Owner) })
	if found == KindLock && len(list) != 1 {
		return KindUnknown, nil
	}
	return found, list
}

// markWriters tells the two sides of a read/write lock apart.
func markWriters(list []Holder) {
	for i := range list {
		list[i].Owner, list[i].Write = strings.CutSuffix(list[i].Owner, ":write")
	}
}

// forceUnlock removes the holders that it finds. want is the kind it has to be, or nil.
func (c *Client) forceUnlock(ctx context.Context, names keys, want *kind) (bool, error) {
	held := false
	for {
		i, err := c.inspect(ctx, names)
		switch {
		case err != nil:
			return held, fail("force unlock", names.name, err)
		case !i.Locked():
			return held, nil
		case i.Kind == KindUnknown, want != nil && i.Kind != want.stored:
			return false, fail("force unlock", names.name, ErrWrongKind)
		case want != nil && want.side != "" && i.heldBy() != want.side:
			return held, nil
		}
		held = true
		gone, err := c.evict(ctx, names, i)
		if err != nil || gone {
			return held, err
		}
		// The holder changed in between: look again.
	}
}

// evict removes the holders that were found, and reports whether any was still there.
func (c *Client) evict(ctx context.Context, names keys, i Inspection) (gone bool, err error) {
	for _, each := range evictions(names, i, c.publish) {
		a, err := c.caller.call(ctx, c.closing, each.cmd, each.keys, each.args)
		switch {
		case err != nil && a.doubt:
			return gone, fail("force unlock", names.name, ErrUnknownOutcome, err)
		case err != nil:
			return gone, fail("force unlock", names.name, err)
		}
		gone = gone || !a.null
	}
	return gone, nil
}

// evictions are the releases of all holders that were found, whoever they are.
func evictions(names keys, i Inspection, publish string) []call {
	switch i.Kind {
	case KindRWLock:
		return rwEvictions(names, i.Holders, publish)
	case KindMutex:
		return []call{{mutexRelease, []string{names.key, names.channel}, []string{i.Holders[0].Owner, publish}}}
	default:
		// It may be a fair lock, whose waiters listen elsewhere.
		args := []string{i.Holders[0].Owner, "-1", "", publish, "0", names.waiterChannel(""), "0"}
		return []call{fairReleaseCall(names, args)}
	}
}

// parseCount reads a hold count.
func parseCount(text string) (int, bool) {
	count, err := strconv.Atoi(text)
	return count, err == nil
}
