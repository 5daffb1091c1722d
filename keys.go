package latchkey

import (
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

	sent [1]string // the key, as commands are given it
}

// alone is the key for a command, without an allocation for each command.
func (k *keys) alone() []string { return k.sent[:] }

// keysOf maps a name and derives everything else from it. It is the only place
// where a name is judged.
func (o *Options) keysOf(name string) (keys, error) {
	if err := checkName(name); err != nil {
		return keys{name: name}, err
	}
	key := o.KeyPrefix + name
	if o.NameMapper != nil {
		key = o.NameMapper(name)
	}
	if err := checkName(key); err != nil {
		return keys{name: name}, err
	}
	tag := transport.HashTag(key)
	return keys{
		name: name, key: key, sent: [1]string{key},
		channel: "redisson_lock__channel:" + tag, token: "redisson_lock_token:" + tag,
	}, nil
}

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

func latchKey(tag string) string { return "latchkey_latch:" + tag }

func totalKey(tag string) string { return "latchkey_sc_total:" + tag }

func idsKey(key string) string { return transport.HashTag(key) + ":timeout" }

func reserveKey(key string) string { return "latchkey_sc_reserve:" + transport.HashTag(key) }
