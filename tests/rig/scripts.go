package rig

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/latchkey-go/latchkey/lua"
)

// scripts returns the names of the library's scripts by their texts and their digests.
var scripts = sync.OnceValue(func() map[string]string {
	names := map[string]string{}
	for _, name := range lua.Names() {
		text := lua.Text(name)
		digest := sha1.Sum([]byte(text)) //nolint:gosec // by which Redis knows scripts
		names[text], names[hex.EncodeToString(digest[:])] = name, name
	}
	return names
})

// Script returns the name of the library's script that a command runs, or "".
func (c Command) Script() string {
	if strings.HasPrefix(c.Name(), "EVAL") && len(c.Args) > 2 {
		return scripts()[c.Args[1]]
	}
	return ""
}

// misfit returns an error if a command runs a script of the library with another number of keys or
// arguments than its header has.
func (c Command) misfit() error {
	name := c.Script()
	if name == "" {
		return nil
	}
	keys, err := strconv.Atoi(c.Args[2])
	if err != nil {
		return err
	}
	args := len(c.Args) - 3 - keys
	if keys > 0 && strings.HasSuffix(c.Args[2+keys], ":never") { // in a cluster, the key that guards a script
		keys--
	}
	alone := name == "look/objects" && keys == 1 // of a single object, without its other keys
	if !alone && !fits(lua.Keys(name), keys) || !fits(lua.Args(name), args) {
		return fmt.Errorf("%s gets %d keys and %d arguments, but its header has others", name, keys, args)
	}
	return nil
}

func fits(in lua.Inputs, n int) bool {
	more := n - in.Least - len(in.Usual)
	return n >= in.Least && (more <= 0 || in.Group > 0 && more%in.Group == 0)
}
