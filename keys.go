package latchkey

import (
	"strings"
	"unicode/utf8"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// MaxNameLength is the longest key, in bytes, that a name may map to.
const MaxNameLength = 512

// keys holds the names that one lock uses in Redis, as Redisson spells them. All of them hash to
// one cluster slot.
type keys struct {
	name    string // as the program gave it
	key     string // as it is in Redis
	channel string
	sent    [3]string // the key, the queue of the waiting owners, the fencing counter: slices of it go into commands

	invalid error // why the name cannot be used
}

func (k *keys) queue() string { return k.sent[1] }
func (k *keys) token() string { return k.sent[2] }

// alone, queued, fenced and counted return the keys for a command: the key; the key and its queue; these and the
// fencing counter; and the key and that counter.
func (k *keys) alone() []string   { return k.sent[:1:1] }
func (k *keys) queued() []string  { return k.sent[:2:2] }
func (k *keys) fenced() []string  { return k.sent[:] }
func (k *keys) counted() []string { return []string{k.key, k.token()} }

// keysOf maps a name and derives everything else from it. No other code validates names.
func (o *Options) keysOf(name string) (*keys, error) {
	key, err := o.keyOf(name)
	if err != nil {
		return &keys{name: name, invalid: err}, err
	}
	return keysOfKey(name, key), nil
}

// keyOf maps a name. With a NameMapper only the key counts: the mapper may be there to make keys of names that
// are none.
func (o *Options) keyOf(name string) (key string, err error) {
	if o.NameMapper != nil {
		key = o.NameMapper(name)
		return key, checkKey("the key from Options.NameMapper", key)
	}
	key = o.KeyPrefix + name
	if err = checkName(name); err == nil && o.KeyPrefix != "" {
		err = checkKey("the name with Options.KeyPrefix", key)
	}
	return key, err
}

// maxPrefixLength is the longest KeyPrefix. It leaves room for the name of the lock of Check.
const maxPrefixLength = MaxNameLength - 64

// checkPrefix refuses a prefix with which every name would be refused.
func checkPrefix(prefix string) error {
	if prefix == "" {
		return nil
	}
	if len(prefix) > maxPrefixLength {
		return fault.Invalid("Options.KeyPrefix has %d bytes, more than %d", len(prefix), maxPrefixLength)
	}
	return checkKey("Options.KeyPrefix", prefix)
}

// keysOfKey derives the names of a lock from its key. They are parts of one string, which is one object
// instead of three for each lock value.
func keysOfKey(name, key string) *keys {
	const channel, token = "redisson_lock__channel:", "redisson_lock_token:"
	queue, open, end := "latchkey_queue:", "{", "}"
	if strings.Contains(key, open) { // as in transport.HashTag
		open, end = "", ""
	}
	if wholeTag(key) { // x and {x} share a channel and a counter, but not their waiters
		queue = "latchkey_queue_tag:"
	}
	all := channel + open + key + end + token + open + key + end + queue + open + key + end
	tag := len(open) + len(key) + len(end)
	toToken := len(channel) + tag
	toQueue := toToken + len(token) + tag
	return &keys{name: name, key: key, channel: all[:toToken], sent: [3]string{key, all[toQueue:], all[toToken:toQueue]}}
}

// wholeTag reports whether braces enclose a whole key, as in {x}, which derives the same keys as x.
func wholeTag(key string) bool { return strings.HasPrefix(key, "{") && strings.HasSuffix(key, "}") }

// checkName is checkKey for a name.
func checkName(name string) error { return checkKey("the name", name) }

// checkKey refuses keys whose derived keys would fall into another cluster slot than the key
// itself, and keys that Java cannot represent.
func checkKey(what, key string) error {
	switch {
	case key == "":
		return fault.Invalid("%s is empty", what)
	case len(key) > MaxNameLength:
		return fault.Invalid("%s has %d bytes, more than %d", what, len(key), MaxNameLength)
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

// recordKey is the key of a client's record. It belongs to no lock and has no prefix, because its
// readers may use another one.
func recordKey(record string) string { return "latchkey_client:{" + record + "}" }

func latchKey(tag string) string { return "latchkey_latch:" + tag }

func leaderKey(tag string) string { return "latchkey_leader:" + tag }

func fairQueueKey(tag string) string { return "redisson_lock_queue:" + tag }

func writersKey(tag string) string { return "latchkey_rw_writers:" + tag }

func totalKey(tag string) string { return "latchkey_sc_total:" + tag }

func semQueueKey(tag string) string { return "latchkey_sc_waiting:" + tag }

func permitQueueKey(tag string) string { return "latchkey_sc_queue:" + tag }

func permitVoidKey(key, id string) string {
	return "latchkey_permit_void:" + transport.HashTag(key) + ":" + id
}

func idsKey(key string) string { return transport.HashTag(key) + ":timeout" }

// numberKindKey is the key that says which kind of object a number is: see
// lua/shared/number_kind.lua. Its name is among those for which users of any such kind have a
// permission.
func numberKindKey(key string) string {
	if wholeTag(key) { // x and {x} are two objects
		return "latchkey_op:" + key + ":kind_tag"
	}
	return "latchkey_op:" + transport.HashTag(key) + ":kind"
}

// fairKeys returns the keys that every script for a fair lock takes.
func (k *keys) fairKeys() []string {
	tag := transport.HashTag(k.key)
	return []string{k.key, fairQueueKey(tag), "redisson_lock_timeout:" + tag, "latchkey_fair:" + tag, k.token()}
}

// semQueueKeys returns the keys of those that wait for the permits of a Semaphore.
func (k *keys) semQueueKeys() []string {
	tag := transport.HashTag(k.key)
	return []string{semQueueKey(tag), "latchkey_sc_calls:" + tag, "latchkey_sc_bar:" + tag}
}

// fairPermitKeys returns the keys that every script of the queue for permits with ids takes.
func (k *keys) fairPermitKeys() []string {
	tag := transport.HashTag(k.key)
	return []string{k.key, idsKey(k.key), permitQueueKey(tag), "latchkey_sc_alive:" + tag, "latchkey_sc_grants:" + tag, numberKindKey(k.key)}
}
