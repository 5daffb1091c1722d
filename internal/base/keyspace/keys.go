// Package keyspace has the names that objects use in Redis: keys, channels, and their slots in a
// cluster.
package keyspace

import (
	"strings"
	"unicode/utf8"

	"github.com/latchkey-go/latchkey/internal/base/fault"
)

// MaxLength is the longest key, in bytes.
const MaxLength = 512

// Keys holds the names that all objects use in Redis, as Redisson spells them, for one object. All
// of them hash to one cluster slot.
type Keys struct {
	Name    string // as the program gave it
	Key     string // as it is in Redis
	Channel string
	sent    [3]string // the key, the queue of the waiting owners, the fencing counter: slices of it go into commands

	Invalid error // why the name cannot be used
}

// Queue is the queue of the waiting owners.
func (k *Keys) Queue() string { return k.sent[1] }

// Token is the counter of the fencing tokens.
func (k *Keys) Token() string { return k.sent[2] }

// Alone returns the keys for a command that needs the key of the object only.
func (k *Keys) Alone() []string { return k.sent[:1:1] }

// Queued returns the key and its queue.
func (k *Keys) Queued() []string { return k.sent[:2:2] }

// Fenced returns the key, its queue and the counter of fencing tokens.
func (k *Keys) Fenced() []string { return k.sent[:] }

// Counted returns the key and the counter of fencing tokens.
func (k *Keys) Counted() []string { return []string{k.Key, k.Token()} }

// Naming is how a client makes keys of names: by a prefix, or by a function.
type Naming struct {
	Prefix string
	Map    func(name string) string
}

// Keys maps a name and derives everything else from it. No other code validates names.
func (n Naming) Keys(name string) (*Keys, error) {
	key, err := n.keyOf(name)
	if err != nil {
		return &Keys{Name: name, Invalid: err}, err
	}
	return OfKey(name, key), nil
}

// keyOf maps a name. With a NameMapper only the key counts: the mapper may be there to make keys of
// names that are none.
func (n Naming) keyOf(name string) (key string, err error) {
	if n.Map != nil {
		key = n.Map(name)
		return key, checkKey("the key from Options.NameMapper", key)
	}
	key = n.Prefix + name
	if err = CheckName(name); err == nil && n.Prefix != "" {
		err = checkKey("the name with Options.KeyPrefix", key)
	}
	return key, err
}

// MaxPrefixLength is the longest KeyPrefix. It leaves room for the name of the lock of Check.
const MaxPrefixLength = MaxLength - 64

// CheckPrefix refuses a prefix with which every name would be refused.
func CheckPrefix(prefix string) error {
	if prefix == "" {
		return nil
	}
	if len(prefix) > MaxPrefixLength {
		return fault.Invalid("Options.KeyPrefix has %d bytes, more than %d", len(prefix), MaxPrefixLength)
	}
	return checkKey("Options.KeyPrefix", prefix)
}

// OfKey derives the names of an object from its key. They are parts of one string, so that each
// value of a lock costs one piece of memory instead of three.
func OfKey(name, key string) *Keys {
	const channel, token = "redisson_lock__channel:", "redisson_lock_token:"
	queue, open, end := "latchkey_queue:", "{", "}"
	if strings.Contains(key, open) { // as in Tag
		open, end = "", ""
	}
	if WholeTag(key) { // x and {x} share a channel and a counter, but not their waiters
		queue = "latchkey_queue_tag:"
	}
	all := channel + open + key + end + token + open + key + end + queue + open + key + end
	tag := len(open) + len(key) + len(end)
	toToken := len(channel) + tag
	toQueue := toToken + len(token) + tag
	return &Keys{
		Name: name, Key: key, Channel: all[:toToken], sent: [3]string{key, all[toQueue:], all[toToken:toQueue]},
	}
}

// CheckName is checkKey for a name.
func CheckName(name string) error { return checkKey("the name", name) }

// checkKey refuses keys whose derived keys would fall into another cluster slot than the key
// itself, and keys that Java cannot represent.
func checkKey(what, key string) error {
	switch {
	case key == "":
		return fault.Invalid("%s is empty", what)
	case len(key) > MaxLength:
		return fault.Invalid("%s has %d bytes, more than %d", what, len(key), MaxLength)
	case !utf8.ValidString(key):
		return fault.Invalid("%s %q is not UTF-8", what, key)
	case !bracesPaired(key):
		return fault.Invalid("%s %q has stray, nested or empty braces", what, key)
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
