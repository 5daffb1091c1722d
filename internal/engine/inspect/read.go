package inspect

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/script"
)

// Read reads the reply of lua/look/objects.lua about one object.
func Read(names *keyspace.Keys, reply rueidis.RedisMessage) (Object, error) {
	o := Object{Name: names.Name, Key: names.Key, Kind: keyspace.KindNone}
	if reply.IsNil() {
		return o, nil
	}
	parts, err := reply.ToArray()
	if err != nil || len(parts) != 7 && len(parts) != 11 {
		return o, errors.Join(script.ErrReply, err)
	}
	redisType, err1 := parts[0].ToString()
	ttl, err2 := parts[1].AsInt64()
	content, err3 := parts[3].AsStrSlice()
	numbers, err4 := integers(parts[4:7])
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return o, errors.Join(script.ErrReply, err)
	}
	if !parts[2].IsNil() {
		o.Token, _ = parts[2].AsInt64()
	}
	o.TTL = script.FromPTTL(ttl)
	o.recognize(redisType, content)
	o.HolderCount, o.Queued, o.Listeners = len(o.Holders), numbers[1], numbers[2]
	if fields := numbers[0]; o.Locked() && fields > len(content)/2 {
		o.HolderCount = fields
		if o.Kind == keyspace.KindRWLock {
			o.HolderCount-- // the mode
		}
	}
	switch {
	case o.Kind == keyspace.KindNumber && len(parts) == 11:
		err = o.readNumber(content[0], parts[7:])
	case o.Kind == keyspace.KindBarrier:
		err = o.readBarrier(content)
	case o.Kind == keyspace.KindRate:
		s, _ := keyspace.ReadLimiter(content[0])
		o.Rate, o.Available, o.Total = s.Rate, s.Available(o.TTL), s.Burst
	}
	if err != nil {
		return o, errors.Join(script.ErrReply, err)
	}
	return o, nil
}

func integers(parts []rueidis.RedisMessage) ([]int, error) {
	all, err := make([]int, len(parts)), error(nil)
	for i, part := range parts {
		n, each := part.AsInt64()
		all[i], err = int(n), errors.Join(err, each)
	}
	return all, err
}

// recognize determines the kind of the key, by the rule in internal/base/keyspace/shape.go.
func (o *Object) recognize(redisType string, content []string) {
	expires := o.TTL != lease.NoExpiry
	o.Kind = keyspace.KindUnknown
	switch {
	case redisType == "none":
		o.Kind = keyspace.KindNone
		return
	case redisType == "hash" && keyspace.IsBarrier(content):
		o.Kind = keyspace.KindBarrier
	case redisType == "hash":
		holders, once := keyspace.OnceShape(content)
		if o.Kind = keyspace.KindOnce; !once {
			o.Kind, holders = keyspace.HashShape(content)
		}
		for _, h := range holders {
			o.Holders = append(o.Holders, Holder{Holder: h})
		}
	case redisType != "string" || len(content) != 1:
	case keyspace.IsNumber(content[0]):
		o.Kind = keyspace.KindNumber
	case keyspace.IsLimiter(content[0]):
		o.Kind = keyspace.KindRate
	case keyspace.IsToken(content[0], expires):
		o.Kind, o.Holders = keyspace.KindMutex, []Holder{{Holder: identity.ReadHolder(content[0], 1, false)}}
	}
	slices.SortFunc(o.Holders, func(a, b Holder) int { return strings.Compare(a.Owner.String(), b.Owner.String()) })
	if o.What = keyspace.Noun(o.Kind); o.What == "" {
		o.What = keyspace.ForeignNoun(redisType, expires, content)
	}
}

// readBarrier reads how many parties a barrier has, and how many it still waits for.
func (o *Object) readBarrier(content []string) (err error) {
	parties := "0"
	if at := slices.Index(content, "parties"); at >= 0 {
		parties = content[at+1]
	}
	o.Total, err = strconv.Atoi(parties)
	o.Count = int64(max(o.Total-o.Queued, 0))
	return err
}

// readNumber distinguishes the kinds of semaphores and a latch.
func (o *Object) readNumber(value string, parts []rueidis.RedisMessage) error {
	numbers, err1 := integers(parts[1:3])
	what, err2 := parts[3].ToString()
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	n, _ := strconv.ParseInt(value, 10, 64)
	if strconv.FormatInt(n, 10) != value { // the server cannot add to it
		o.Kind = keyspace.KindUnknown
		return nil
	}
	held, over := numbers[0], numbers[1]
	switch what {
	case "permit semaphore":
		o.Kind, o.Available, o.HolderCount = keyspace.KindSemaphore, int(n)+over, held
		o.Total = o.Available + held
	case "semaphore":
		o.Kind, o.Available = keyspace.KindSemaphore, int(n)
		if total, err := parts[0].AsInt64(); err == nil {
			o.Total, o.HolderCount = int(total), int(total)-o.Available
		}
	default:
		o.Kind, o.Count = cmp.Or(keyspace.Kind(what), keyspace.KindNumber), n
	}
	if what != "" {
		o.What = "a " + what
	}
	return nil
}

// become makes a number what it is taken for, because nothing shows what it is.
func (o *Object) become(want string) {
	switch want {
	case "a semaphore":
		o.Kind, o.Available, o.Count = keyspace.KindSemaphore, int(o.Count), 0
	case "a permit semaphore":
		o.Kind, o.Available, o.Total, o.Count = keyspace.KindSemaphore, int(o.Count), int(o.Count), 0
	case "a latch":
		o.Kind = keyspace.KindLatch
	default:
		return
	}
	o.What = want
}
