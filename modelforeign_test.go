package latchkey

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/primitive/barrier"
	"github.com/latchkey-go/latchkey/internal/primitive/lock"
)

// An operation of one kind changes nothing about an object of another kind.

// foreigners are the kinds of objects, by the form of their keys, with the operations of each kind.
var foreigners = map[string]func(c *Client) []func(){
	"counter": func(c *Client) []func() {
		return append(append(semaphoreOperations(c), permitOperations(c)...), latchOperations(c)...)
	},
	"string": func(c *Client) []func() { return lockOperations(acquire.NewLock(c.engine(), lock.Mutex, modelName)) },
	"hash": func(c *Client) []func() {
		return slices.Concat(lockOperations(acquire.NewLock(c.engine(), lock.Reentrant, modelName)),
			lockOperations(&c.NewFairLock(modelName).inside))
	},
	"barrier": func(c *Client) []func() { return barrierOperations(&c.NewBarrier(modelName, 2).inside) },
	"rwlock": func(c *Client) []func() {
		l := c.NewRWLock(modelName)
		return append(lockOperations(&l.read.inside), lockOperations(&l.write.inside)...)
	},
}

// intrude sends an operation for a kind of object other than the existing one, which has the form own.
func (w *world) intrude(d dice, key, own string) {
	if w.state(key)[0].kind == "none" {
		return
	}
	kinds := slices.Sorted(maps.Keys(foreigners))
	kinds = slices.DeleteFunc(kinds, func(kind string) bool { return kind == own })
	c := w.clients[d[0]%len(w.clients)]
	kind := kinds[d[1]%len(kinds)]
	operations := foreigners[kind](c)
	operation := operations[d[2]%len(operations)]
	words := w.record(operation)
	if words == nil {
		return // answered without a change
	}
	before := w.dump()
	reply := w.do(words...)
	what := fmt.Sprintf("an operation for a %s, %s,", kind, w.describe(words))
	w.say("%s -> %s", what, show(reply))
	after := w.dump()
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if before[name] != after[name] {
			w.fail("%s changes %s of another kind from %s to %s", what, name, before[name], after[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if before[name] == "" {
			w.fail("%s makes %s beside an object of another kind: %s", what, name, after[name])
		}
	}
}

// dump returns the content of all keys, except the records of operations.
func (w *world) dump() map[string]string {
	keys := slices.DeleteFunc(w.everything(), func(key string) bool { return strings.HasPrefix(key, "latchkey_op:") })
	all := map[string]string{}
	for i, e := range w.state(keys...) {
		slices.Sort(e.list)
		all[keys[i]] = fmt.Sprint(e)
	}
	return all
}

// describe returns the name and the arguments of the script of a command.
func (w *world) describe(words []string) string {
	if words[0] != "EVALSHA" {
		return strings.Join(words, " ")
	}
	return w.names[words[1]] + " " + strings.Join(words[3:], " ")
}

func lockOperations(p *acquire.Lock) []func() {
	send := func(build func(a *acquire.Acquisition) script.Call) func() {
		return func() {
			c := build(&acquire.Acquisition{Request: request.Request{Lease: 5 * time.Second}, Lock: p, Ownership: p.Client.Registry.Fresh(&p.Lock)})
			c.Cmd.Send(context.Background(), p.Client.Rueidis, c.Keys, c.Args)
		}
	}
	operations := []func(){
		send(func(a *acquire.Acquisition) script.Call { return p.Spec.Attempts.AcquireCall(a, 1, 0) }),
		send(func(a *acquire.Acquisition) script.Call { return p.Spec.Attempts.AcquireCall(a, 1, 1) }),
		send(func(a *acquire.Acquisition) script.Call {
			return a.Ownership.ReleaseCall(ownership.Release{}, nil)
		}),
		send(func(a *acquire.Acquisition) script.Call { return p.Spec.Protocol.RenewalCall(a.Ownership, a.Lease) }),
	}
	if p.CheckAtLeast() == nil {
		operations = append(operations,
			send(func(a *acquire.Acquisition) script.Call {
				return a.Ownership.ReleaseCall(ownership.Release{Keep: time.Second}, nil)
			}))
	}
	return operations
}

func semaphoreOperations(c *Client) []func() {
	s, ctx := c.NewSemaphore(modelName), context.Background()
	return []func(){
		func() { _, _ = s.TrySetPermits(ctx, 3) },
		func() { _ = s.SetPermits(ctx, 3) },
		func() { _ = s.AddPermits(ctx, 3) },
		func() { _ = s.Release(ctx) },
		func() { _, _ = s.ReleaseIfExists(ctx, 1) },
		func() { _ = s.TryAcquire(ctx) },
		func() { _, _ = s.Drain(ctx) },
		func() { _, _ = s.SetTTL(ctx, time.Second) },
		func() { _, _ = s.SetTTL(ctx, NoExpiry) },
		func() { _, _ = s.Delete(ctx) },
		func() { _, _ = s.Stats(ctx) },
	}
}

func permitOperations(c *Client) []func() {
	s, ctx := c.NewPermitSemaphore(modelName), context.Background()
	return []func(){
		func() { _, _ = s.TrySetPermits(ctx, 3) },
		func() { _ = s.SetPermits(ctx, 3) },
		func() { _ = s.AddPermits(ctx, 3) },
		func() { _, _ = s.TryAcquire(ctx) },
		func() { _, _ = s.Release(ctx, strings.Repeat("00", 16)) },
		func() { _ = s.SetLease(ctx, strings.Repeat("00", 16), time.Second) },
		func() { _, _ = s.SetTTL(ctx, time.Second) },
		func() { _, _ = s.SetTTL(ctx, NoExpiry) },
		func() { _, _ = s.Delete(ctx) },
		func() { _, _ = s.Stats(ctx) },
	}
}

func latchOperations(c *Client) []func() {
	l, ctx := c.NewCountDownLatch(modelName), context.Background()
	return []func(){
		func() { _, _ = l.TrySetCount(ctx, 3) },
		func() { _, _ = l.CountDown(ctx) },
		func() { _, _ = l.CountDownAs(ctx, "somebody") },
		func() { _, _ = l.Delete(ctx) },
		func() { _ = l.Await(ctx, Wait(time.Millisecond)) },
	}
}

func barrierOperations(b *barrier.Barrier) []func() {
	send := func(build func(p *barrier.Party) script.Call) func() {
		return func() {
			p := b.NewParty("await", "", &request.Request{Lease: 5 * time.Second})
			p.View.Generation = "1"
			c := build(p)
			p.Sent.Done()
			c.Cmd.Send(context.Background(), b.Client.Rueidis, c.Keys, c.Args)
		}
	}
	return []func(){
		send((*barrier.Party).Arriving),
		send((*barrier.Party).Looking),
		send((*barrier.Party).Returning),
		send(func(p *barrier.Party) script.Call { p.Known = true; return p.Leaving(barrier.Left) }),
		send(func(p *barrier.Party) script.Call {
			return barrier.Protocol{Of: b}.RenewalCall(p.Ownership, p.Request.Lease)
		}),
		send(func(*barrier.Party) script.Call {
			return script.NewCall(script.BarrierReset, b.All(), "0", b.Client.Publish, b.Names.Channel)
		}),
	}
}
