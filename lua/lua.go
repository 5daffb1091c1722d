// Package lua has the scripts that the library runs on a server. It is not an API for other
// programs: it may change in any version.
//
// The header of a script lists its keys and arguments, in their order. They are locals of the
// script. A value is the default of one that may be left out:
//
//	--@keys key queue=nil
//	--@args owner count='0'
//
// Two forms stand for any number of further ones, at the end. firstField is the index of the first
// in KEYS or ARGV. Groups of keys or arguments are locals without a value, which the script sets
// for each group:
//
//	--@args owner firstField...
//	--@keys (key waiting)...
//
// A line with --@include inserts a fragment, unless its script has it there already. The header of
// a fragment lists the locals of its script that it uses:
//
//	--@include queue/enqueue
//	--@needs queue
//
// A header explains its names, except those that a fragment of its folder explains, such as
// permit/state.lua, and those that mean the same in all scripts:
//
//	key               the object, as its name in Redis
//	note, number      of an operation that counts once: see shared/op.lua
//	kind              which object a number is: see shared/number_kind.lua
//	owner             an owner, as text
//	lease             in ms
//	publish           PUBLISH or SPUBLISH
//	channel           of the object, on which its waiters listen, also those of Redisson
//	waits             a second channel: each client of this library that listens on channel also
//	                  listens there
//	prefix, suffix    around the id of a client in the name of its channel; in scripts where prefix
//	                  means something else, clients and suffix
//	counted, counts   '1' if the server reports the number of all receivers of a message
//	queueName         name of the queue: if the key in its place is another one, it was left out
//
// A full server is one that is out of memory, and runs no command that may need more. Two errors that
// many scripts reply mean the same in all, and headers do not repeat them:
//
//	WRONGTYPE         a key is of another kind of object; nothing changed
//	LATCHKEY_PAST     the operation, which counts once, is over; nothing changed: see shared/op.lua
package lua

import (
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"strconv"
	"strings"
)

//go:embed */*.lua
var files embed.FS

// Names returns the names of all scripts: those of their files, with the folder.
func Names() (names []string) {
	paths, _ := fs.Glob(files, "*/*.lua")
	for _, path := range paths {
		name := strings.TrimSuffix(path, ".lua")
		if Keys(name).locals != "" { // not a fragment
			names = append(names, name)
		}
	}
	return names
}

// Text returns the script in a file, such as lock/acquire, as it is sent: with its fragments, its
// keys and arguments as locals, and without its comments.
func Text(name string) string {
	var text strings.Builder
	text.WriteString(Keys(name).locals + Args(name).locals)
	expand(name, "", map[string]bool{}, func(_, line string) {
		if !strings.HasPrefix(strings.TrimSpace(line), "--") {
			text.WriteString(line)
		}
	})
	return text.String()
}

// expand calls f with the lines of a file and of the fragments that it includes, except those that
// its script has seen. What an indented line includes belongs to its block, and is not seen after
// it.
func expand(name, indent string, seen map[string]bool, f func(file, line string)) {
	for line := range strings.Lines(read(name)) {
		trimmed := strings.TrimLeft(line, " ")
		in := line[:len(line)-len(trimmed)]
		fragment, includes := strings.CutPrefix(strings.TrimSpace(trimmed), "--@include ")
		switch {
		case includes && seen[fragment]:
		case includes && in != "":
			expand(fragment, indent+in, maps.Clone(seen), f)
		case includes:
			seen[fragment] = true
			expand(fragment, indent, seen, f)
		default:
			f(name, indent+line)
		}
	}
}

// Inputs are the keys or the arguments of a script.
type Inputs struct {
	Least int      // it takes at least so many
	Usual []string // the defaults of those that follow and may be left out
	Group int      // then any number of groups of so many, or nothing if this is 0

	locals string // the line of Lua that makes them locals
}

// Keys returns the keys of a script.
func Keys(name string) Inputs { return inputs(read(name), "--@keys ", "KEYS") }

// Args returns the arguments of a script.
func Args(name string) Inputs { return inputs(read(name), "--@args ", "ARGV") }

// inputs reads the lines with a mark in the text of a script.
func inputs(text, mark, table string) (in Inputs) {
	var names, values []string
	groups := false
	for line := range strings.Lines(text) {
		list, found := strings.CutPrefix(line, mark)
		if !found {
			continue
		}
		for _, word := range strings.Fields(list) {
			local, usual, optional := strings.Cut(strings.Trim(word, "()."), "=")
			names = append(names, local)
			value := fmt.Sprintf("%s[%d]", table, len(names))
			groups = groups || word[0] == '('
			switch {
			case groups:
				in.Group++
			case strings.HasSuffix(word, "..."):
				in.Group, value = 1, strconv.Itoa(len(names))
			case optional:
				in.Usual = append(in.Usual, strings.Trim(usual, "'"))
				value += " or " + usual
			default:
				in.Least++
			}
			values = append(values, value)
		}
	}
	switch {
	case groups:
		in.locals = "local " + strings.Join(names, ", ") + "\n"
	case names != nil:
		in.locals = "local " + strings.Join(names, ", ") + " = " + strings.Join(values, ", ") + "\n"
	}
	return in
}

func read(name string) string {
	text, err := files.ReadFile(name + ".lua")
	if err != nil {
		panic(err)
	}
	return string(text)
}
