package latchkey

import (
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// MaxNameLength is the longest key, in bytes, that a name may map to.
const MaxNameLength = 512

// keys holds the names under which one lock lives in Redis, as Redisson spells
// them. All of them hash to one cluster slot.
type keys struct {
	name    string // as the program says it
	key     string // as Redis knows it
	channel string
	token   string // fencing counter

	queue string   // of the owners that wait
	fair  []string // all those of a fair lock

	sent [5]string // the key, the queue and the counter; and the key and the counter, as commands are given them

	family  Kind        // of the lock, if the name cache may have them, else ""
	invalid error       // why the name cannot be used
	noQueue atomic.Bool // the user may not use the queue
}

// alone is the key for a command, queued the key and its queue, fenced those and the fencing
// counter, and counted the key and that counter, without an allocation for each command.
func (k *keys) alone() []string   { return k.sent[:1] }
func (k *keys) queued() []string  { return k.sent[:2] }
func (k *keys) fenced() []string  { return k.sent[:3] }
func (k *keys) counted() []string { return k.sent[3:] }

// keysOf maps a name and derives everything else from it. It is the only place
// where a name is judged.
func (o *Options) keysOf(name string) (*keys, error) {
	if err := checkName(name); err != nil {
		return &keys{name: name, invalid: err}, err
	}
	key := o.KeyPrefix + name
	if o.NameMapper != nil {
		key = o.NameMapper(name)
	}
	if err := checkName(key); err != nil {
		return &keys{name: name, invalid: err}, err
	}
	return keysOfKey(name, key), nil
}

// keysOfKey derives the names of a lock from its key.
func keysOfKey(name, key string) *keys {
	tag := transport.HashTag(key)
	k := &keys{
		name: name, key: key, queue: queueKey(key),
		channel: "redisson_lock__channel:" + tag, token: "redisson_lock_token:" + tag,
	}
	k.sent = [5]string{key, k.queue, k.token, key, k.token}
	return k
}

// queueKey is the queue of a lock. The locks x and {x} share a channel and a counter; one queue
// would give the one to those who wait for the other.
func queueKey(key string) string {
	if wholeTag(key) {
		return "latchkey_queue_tag:" + key
	}
	return "latchkey_queue:" + transport.HashTag(key)
}

// wholeTag reports whether a key, {x}, derives the same keys as another, x.
func wholeTag(key string) bool { return strings.HasPrefix(key, "{") && strings.HasSuffix(key, "}") }

// checkName refuses names whose derived keys would fall into another cluster
// slot than the name itself, or that Java could not spell.
func checkName(name string) error {
	switch {
	case name == "":
		return invalid("the name is empty")
	case len(name) > MaxNameLength:
		return invalid("the name has %d bytes, more than %d", len(name), MaxNameLength)
	case !utf8.ValidString(name):
		return invalid("the name %q is not UTF-8", name)
	case !bracesPaired(name):
		return invalid("the name %q has stray, nested or empty braces", name)
	}
	return nil
}

// bracesPaired reports whether every brace belongs to a pair with something, but
// no brace, inside.
func bracesPaired(name string) bool {
	open := -1
	for i := range len(name) {
		switch name[i] {
		case '{':
			if open >= 0 {
				return false
			}
			open = i
		case '}':
			if open < 0 || open == i-1 {
				return false
			}
			open = -1
		}
	}
	return open < 0
}

// recordKey is what a client says of itself. It belongs to no lock, and has no prefix: who looks may use another.
func recordKey(record string) string { return "latchkey_client:{" + record + "}" }

func latchKey(tag string) string { return "latchkey_latch:" + tag }

func leaderKey(tag string) string { return "latchkey_leader:" + tag }

func fairQueueKey(tag string) string { return "redisson_lock_queue:" + tag }

func writersKey(tag string) string { return "latchkey_rw_writers:" + tag }

func totalKey(tag string) string { return "latchkey_sc_total:" + tag }

func permitQueueKey(tag string) string { return "latchkey_sc_queue:" + tag }

func permitVoidKey(key, id string) string {
	return "latchkey_permit_void:" + transport.HashTag(key) + ":" + id
}

func idsKey(key string) string { return transport.HashTag(key) + ":timeout" }

func reserveKey(key string) string { return "latchkey_sc_reserve:" + transport.HashTag(key) }

// fairKeys are those of every script for a fair lock.
func (k *keys) fairKeys() []string {
	tag := transport.HashTag(k.key)
	return []string{k.key, fairQueueKey(tag), "redisson_lock_timeout:" + tag, "latchkey_fair:" + tag, k.token}
}
