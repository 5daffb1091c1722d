package latchkey

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// Inspection is what one name had in Redis at one moment.
type Inspection struct {
	Name string // as the program gave it
	Key  string // as it is in Redis
	// Kind is KindMutex, KindLock (which re-entrant, fenced and spin locks share) or
	// KindRWLock; KindNone for a free name; KindSemaphore, KindLatch or KindNumber; or
	// KindUnknown for anything else. Data of an application that looks like the token of
	// a mutex is taken for one.
	Kind Kind
	// What is the kind in words, also of what is no object of this library: "a lock",
	// "a list", "a hash without any lock owner". It is "" for a free name.
	What    string
	TTL     time.Duration // time until the key expires: 0 when free, NoExpiry if it does not
	Holders []Holder      // of a lock, in the order of their owners; empty otherwise
	Token   int64         // the last fencing token issued under the name, 0 if none
}

// Holder is an owner that holds a lock.
type Holder struct {
	// Owner is the owner as it stands in Redis. That of a mutex is its token; one that
	// another library has made cannot be used with [By].
	Owner Owner
	Count int  // how often the owner has entered, from 1 on
	Write bool // of a read/write lock: it writes; an owner that does both is there twice
}

// Locked reports whether the name is a lock, and held. A semaphore, a latch and data of an
// application are not locked.
func (i Inspection) Locked() bool {
	switch i.Kind {
	case KindMutex, KindLock, KindRWLock, KindMulti, KindRed:
		return true
	}
	return false
}

// Inspect asks the server what is stored under a name, whatever kind of object it is. The
// server that decides about the lock is asked, never a replica. The answer may be out of date
// when it arrives; a name that is free has the kind [KindNone]. What is no object of this
// library is no error: Kind is [KindUnknown], and What says what it is.
//
// It is repeated for Options.RetryBudget while the server is in trouble. The error matches
// ErrUnavailable if the server could not be asked until then or until ctx ended, ErrClosed,
// ErrInvalid if the name cannot be used, or is a *rueidis.RedisError if the server refuses.
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

// ForceUnlock frees the lock of that name whoever holds it and whichever kind of lock it is,
// wakes waiters, and reports whether anybody held it. It removes exactly the holders that it
// saw: a hold that begins after it has looked is not touched.
//
// Anything but a lock is an ErrWrongKind and stays as it is. So does a string that is not of
// the shape that [ParseOwner] reads, since data of an application may look like the token
// of a mutex of another library: to remove such a token, use [Mutex.ForceUnlock].
//
// The former holders are not asked. Those of this library learn of it at their next renewal,
// a third of their lease later at most, and their holds end with ErrLost. Until then they work
// on, and two may be inside.
//
// The other errors are those of Inspect, and ErrUnknownOutcome: a removal was sent and not
// answered. It may or may not have happened, and may be repeated.
func (c *Client) ForceUnlock(ctx context.Context, name string) (bool, error) {
	names, err := c.options.keysOf(name)
	if err != nil {
		return false, fail("force unlock", name, err)
	}
	return c.forceUnlock(ctx, names, nil)
}

// Inspect asks the server who holds the lock, how often, and for how long. The server that
// decides about the lock is asked, never a replica. The answer may be out of date when it
// arrives. A lock that is free has the kind [KindNone] and no holders.
//
// It is repeated for Options.RetryBudget while the server is in trouble. The error matches
// ErrUnavailable if the server could not be asked until then or until ctx ended, ErrClosed,
// ErrWrongKind if the key is another kind of object (the Inspection then says what it is),
// ErrInvalid if the name cannot be used, or is a *rueidis.RedisError if the server refuses.
func (p *primitive) Inspect(ctx context.Context) (Inspection, error) {
	if p.invalid != nil {
		return Inspection{}, fail("inspect", p.name, p.invalid)
	}
	i, err := p.client.inspect(ctx, p.keys)
	if err == nil && i.Kind != KindNone && i.Kind != p.kind.stored {
		err = notA(p.kind.stored, i.What, nil)
	}
	if err != nil {
		return i, fail("inspect", p.name, err)
	}
	return i, nil
}

// ForceUnlock frees the lock whoever holds it, however often, wakes a waiter, and reports
// whether anybody held it. It removes exactly the owner that it saw: a hold that begins after
// it has looked is not touched.
//
// The former holder is not asked. If it is a client of this library, its hold ends with
// ErrLost at its next renewal, a third of its lease later at most. Until then it works on,
// and two may be inside.
//
// The errors are those of Inspect, and ErrUnknownOutcome: the removal was sent and not
// answered. It may or may not have happened, and may be repeated.
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
	if err = i.read(a.message); err == nil && i.Kind == KindNumber {
		i.Kind = c.kindOfNumber(ctx, names.key)
		i.What = nouns[i.Kind]
	}
	return i, err
}

// kindOfNumber is KindSemaphore or KindLatch if what stands beside a number tells.
func (c *Client) kindOfNumber(ctx context.Context, key string) Kind {
	tag := hashTag(key)
	a, err := c.caller.call(ctx, c.closing, inspectNumber, []string{latchKey(tag), totalKey(tag), idsKey(key)}, nil)
	if err != nil {
		return KindNumber
	}
	found, _ := a.message.ToString()
	return cmp.Or(Kind(found), KindNumber)
}

// read takes the reply of inspect.lua apart.
func (i *Inspection) read(reply rueidis.RedisMessage) error {
	parts, err := reply.ToArray()
	if err != nil || len(parts) != 4 {
		return errors.Join(errReply, err)
	}
	redisType, err1 := parts[0].ToString()
	ttl, err2 := parts[1].AsInt64()
	content, err3 := parts[3].AsStrSlice()
	if err := errors.Join(err1, err2, err3); err != nil {
		return errors.Join(errReply, err)
	}
	if !parts[2].IsNil() {
		i.Token, _ = parts[2].AsInt64()
	}
	i.TTL = remaining(ttl)
	i.recognize(redisType, content)
	return nil
}

// recognize finds out what the key is, by the rule in shape.go.
func (i *Inspection) recognize(redisType string, content []string) {
	expires := i.TTL != NoExpiry
	i.Kind = KindUnknown
	switch {
	case redisType == "none":
		i.Kind = KindNone
		return
	case redisType == "hash":
		i.Kind, i.Holders = hashShape(content)
	case redisType != "string" || len(content) != 1:
	case isNumber(content[0]):
		i.Kind = KindNumber
	case isToken(content[0], expires):
		i.Kind, i.Holders = KindMutex, []Holder{{Owner: ownerOf(content[0]), Count: 1}}
	}
	if i.Kind == KindRWLock {
		markWriters(i.Holders)
	}
	slices.SortFunc(i.Holders, func(a, b Holder) int { return strings.Compare(a.Owner.String(), b.Owner.String()) })
	if i.What = nouns[i.Kind]; i.What == "" {
		i.What = foreignNoun(redisType, expires, content)
	}
}

// wrongKind replaces the server's complaint about the type of a key by an ErrWrongKind
// that says what is there. Any other error stays as it is.
func (c *Client) wrongKind(ctx context.Context, names keys, want Kind, err error) error {
	if !hasCode(err, "WRONGTYPE") || errors.Is(err, ErrWrongKind) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*longPause)
	defer cancel()
	i, failed := c.inspect(ctx, names)
	if failed == nil && (i.Kind == want || i.Kind == KindNumber && (want == KindSemaphore || want == KindLatch)) {
		return &kindError{nouns[want] + ", but a key that belongs to it holds something else", err}
	}
	return notA(want, i.What, err)
}

// markWriters tells the two sides of a read/write lock apart.
func markWriters(list []Holder) {
	for i := range list {
		text, write := strings.CutSuffix(list[i].Owner.String(), ":write")
		list[i].Owner, list[i].Write = ownerOf(text), write
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
		case i.Kind == KindNone:
			return held, nil
		case want != nil && i.Kind != want.stored:
			return held, fail("force unlock", names.name, notA(want.stored, i.What, nil))
		case want == nil && i.Kind == KindMutex && !i.Holders[0].Owner.reentrant():
			return held, fail("force unlock", names.name, errMutexByName)
		case !i.Locked():
			return held, fail("force unlock", names.name, notA(KindLock, i.What, nil))
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

// errMutexByName refuses to remove a token that anybody may have made.
var errMutexByName error = &kindError{
	text: "a string, which may be a mutex or data of an application; ForceUnlock of a Mutex removes it",
}

// evict removes the holders that were found, and reports whether any was still there.
func (c *Client) evict(ctx context.Context, names keys, i Inspection) (gone bool, err error) {
	for _, each := range c.evictions(names, i) {
		a, err := c.caller.call(ctx, c.closing, each.cmd, each.keys, each.args)
		switch {
		case err != nil && a.doubt:
			return gone, fail("force unlock", names.name, ErrUnknownOutcome, err)
		case err != nil:
			return gone, fail("force unlock", names.name, c.wrongKind(ctx, names, i.Kind, err))
		}
		gone = gone || !a.null
	}
	return gone, nil
}

// evictions are the releases of all holders that were found, whoever they are.
func (c *Client) evictions(names keys, i Inspection) []call {
	switch i.Kind {
	case KindRWLock:
		return rwEvictions(names, i.Holders, c.publish)
	case KindMutex:
		return []call{{mutexRelease, []string{names.key}, []string{i.Holders[0].Owner.String(), c.publish, names.channel}}}
	default:
		// It may be a fair lock, whose waiters listen elsewhere.
		args := []string{i.Holders[0].Owner.String(), "-1", "", c.publish, names.channel, "0", "0", c.lines.stale}
		return []call{{fairRelease, names.fairKeys(), args}}
	}
}
