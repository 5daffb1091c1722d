package model

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/primitive/barrier"
	"github.com/latchkey-go/latchkey/internal/primitive/fair"
	"github.com/latchkey-go/latchkey/internal/primitive/latch"
	"github.com/latchkey-go/latchkey/internal/primitive/lock"
	"github.com/latchkey-go/latchkey/internal/primitive/rw"
)

// An operation of one kind changes nothing about an object of another kind.

// foreigners are the kinds of objects, by the form of their keys, with the operations of each kind.
var foreigners = map[string]func(c *core.Parts) []func(){
	"counter": func(c *core.Parts) []func() {
		return append(append(semaphoreOperations(c), permitOperations(c)...), latchOperations(c)...)
	},
	"string": func(c *core.Parts) []func() { return lockOperations(acquire.NewLock(c, lock.Mutex, modelName)) },
	"hash": func(c *core.Parts) []func() {
		return slices.Concat(lockOperations(acquire.NewLock(c, lock.Reentrant, modelName)),
			lockOperations(acquire.NewLock(c, fair.Spec(c, false), modelName)))
	},
	"barrier": func(c *core.Parts) []func() { return barrierOperations(newBarrier(c, 2)) },
	"rwlock": func(c *core.Parts) []func() {
		return append(lockOperations(acquire.NewLock(c, rw.Read, modelName)), lockOperations(acquire.NewLock(c, rw.Write, modelName))...)
	},
}

// intrude sends an operation for a kind of object other than the existing one, which has the form
// own.
func (w *world) intrude(d dice, key, own string) {
	if w.State(key)[0].Kind == "none" {
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
	reply := w.Do(words...)
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
	for i, e := range w.State(keys...) {
		slices.Sort(e.List)
		all[keys[i]] = fmt.Sprint(e)
	}
	return all
}

// describe returns the name and the arguments of the script of a command.
func (w *world) describe(words []string) string {
	if words[0] != "EVALSHA" {
		return strings.Join(words, " ")
	}
	return w.ScriptName(words[1]) + " " + strings.Join(words[3:], " ")
}

func lockOperations(p *acquire.Lock) []func() {
	send := func(build func(a *acquire.Acquisition) script.Call) func() {
		return func() {
			c := build(&acquire.Acquisition{Request: request.Request{Lease: 5 * time.Second}, Lock: p, Ownership: ownership.Fresh(&p.Lock)})
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

func semaphoreOperations(c *core.Parts) []func() {
	s, ctx := newSemaphore(c), context.Background()
	return []func(){
		func() { _, _ = s.TrySet(ctx, 3, nil) },
		func() { _ = s.Set(ctx, 3) },
		func() { _ = s.Add(ctx, 3) },
		func() { _ = s.Release(ctx, 1) },
		func() { _, _ = s.ReleaseIfExists(ctx, 1) },
		func() { _ = s.Acquire(ctx, "try acquire", false, 1, nil) },
		func() { _, _ = s.Drain(ctx) },
		func() { _, _ = s.SetTTL(ctx, time.Second) },
		func() { _, _ = s.SetTTL(ctx, lease.NoExpiry) },
		func() { _, _ = s.Delete(ctx) },
		func() { _, _ = s.Inspect(ctx) },
	}
}

func permitOperations(c *core.Parts) []func() {
	s, ctx := newPool(c), context.Background()
	return []func(){
		func() { _, _ = s.TrySet(ctx, 3, nil) },
		func() { _ = s.Set(ctx, 3) },
		func() { _ = s.Add(ctx, 3) },
		func() { _, _ = s.Acquire(ctx, "try acquire", false, 1, nil) },
		func() { _, _ = s.Release(ctx, []string{strings.Repeat("00", 16)}) },
		func() { _ = s.SetLease(ctx, strings.Repeat("00", 16), time.Second) },
		func() { _, _ = s.SetTTL(ctx, time.Second) },
		func() { _, _ = s.SetTTL(ctx, lease.NoExpiry) },
		func() { _, _ = s.Delete(ctx) },
		func() { _, _ = s.Inspect(ctx) },
	}
}

func latchOperations(c *core.Parts) []func() {
	l, ctx := latch.New(c, modelName), context.Background()
	return []func(){
		func() { _, _ = l.TrySetCount(ctx, 3, nil) },
		func() { _, _ = l.CountDown(ctx, 1, "") },
		func() { _, _ = l.CountDownAs(ctx, "somebody") },
		func() { _, _ = l.Delete(ctx) },
		func() { _ = l.Await(ctx, []request.Setting{{Kind: request.Wait, D: time.Millisecond}}) },
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
