package latchkey

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/undo"
)

// A contended lock is handed over from client to client. An owner that is refused waits in a queue
// next to the lock. The script that releases the lock makes the first in the queue its owner, and
// tells the client of that owner on the client's own channel. So a change of owners costs two
// commands, however many wait, and follows the order in which the clients arrived.
//
// An owner is used for one wait and one turn, and never again. A message or command that comes
// late, or twice, names an owner that is already used, and can do no harm. tests/handover explores
// this protocol.

// grant is what the message to a client says about an owner that has been given the lock.
type grant struct {
	token int64
	lease time.Duration
	since string // when the granted entry joined the queue
}

// handover knows the owners of a client that wait in queues, and listens for messages about them.
type handover struct {
	client  *Client
	own     string      // the channel of this client, unless messages are sharded
	counted string      // '1' if the server counts all receivers of a message
	any     atomic.Bool // there are channels, so messages about an owner may arrive

	mu       sync.Mutex
	channels map[string]*clientChannel
	specs    map[string]*spec // for locks to be given back, by the kind that a grant names

	// strayCall leaves the queue of a semaphore for an entry that nobody waits for any more. It is set before there is any.
	strayCall func(key, entry string)
}

func newHandover(c *Client) *handover {
	h := &handover{client: c, own: "latchkey:{" + c.id + "}", counted: "1", channels: map[string]*clientChannel{}}
	h.specs = map[string]*spec{"h": {kind: keyspace.KindLock, protocol: hashProtocol{}}} // for all kinds in a hash
	if c.cluster && c.publish == "PUBLISH" {
		h.counted = "0" // a node counts its own subscribers only
	}
	return h
}

// channelOf returns the prefix and the suffix of the clients' channels for a lock. The id of the
// client goes in between.
func (h *handover) channelOf(key string) (prefix, suffix string) {
	if h.client.publish == "SPUBLISH" {
		return "latchkey:" + keyspace.Tag(key) + ":", ""
	}
	return "latchkey:{", "}"
}

// ownChannel is the channel of this client for a lock.
func (h *handover) ownChannel(key string) string {
	if h.client.publish == "SPUBLISH" {
		prefix, suffix := h.channelOf(key)
		return prefix + h.client.id + suffix
	}
	return h.own
}

// channelArgs appends what scripts need to know about the clients' channels: prefix, suffix, and
// whether the server counts all receivers.
func (h *handover) channelArgs(to []string, key string) []string {
	prefix, suffix := h.channelOf(key)
	return append(to, prefix, suffix, h.counted)
}

// giveBack releases a lock that was granted to an owner that no longer waits, unless the owner has
// the lock. While the owner releases it, a second release is delayed: most grants that arrive then
// are late copies of the grant that the owner has used. If the second release were executed first,
// the owner's own release would find the lock gone, and report it lost.
func (h *handover) giveBack(kind, owner, key string) {
	name := identity.Of(owner)
	if o := h.client.registry.liveOn(key, name); o != nil {
		if !o.usable() {
			o.undoLater(undo.RetryPause, h.client.options.StaleWaiterTimeout)
		}
		return
	}
	h.mu.Lock()
	spec := h.specs[kind]
	h.mu.Unlock()
	if spec == nil || spec.inUse != nil && spec.inUse(h.client.registry, key, owner) {
		return
	}
	lock := primitiveOf(h.client, spec, keyspace.OfKey(key, key))
	o := h.client.registry.build(lock, name, 0, false)
	h.client.sender.Background(func() {
		h.client.undo.Add(o.lastRelease(), undo.Plan{Key: key, Lease: h.client.options.StaleWaiterTimeout})
	})
}
