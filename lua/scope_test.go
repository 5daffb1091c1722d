package lua

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Every name in a script is a local where it is used: a mistake would only show when the line runs.
// Where a fragment is included, so are the names that it needs.
func TestNamesAreLocals(t *testing.T) {
	for _, name := range Names() {
		for file, names := range undefined(name, true) {
			assert.Empty(t, slices.Sorted(maps.Keys(names)), "%s, included by %s", file, name)
		}
	}
}

// A fragment says which names it needs besides those of the fragments that it includes.
func TestFragmentsNameWhatTheyNeed(t *testing.T) {
	scripts := Names()
	eachFile(t, func(name, text string) {
		if !slices.Contains(scripts, name) {
			var needs []string
			for line := range strings.Lines(text) {
				needs = append(needs, needed(line)...)
			}
			slices.Sort(needs)
			assert.Equal(t, needs, slices.Sorted(maps.Keys(undefined(name, false)[name])), name)
		}
	})
}

// needed returns the names in a line that begins with --@needs.
func needed(line string) []string {
	names, is := strings.CutPrefix(strings.TrimSpace(line), "--@needs ")
	if !is {
		return nil
	}
	return strings.Fields(names)
}

var (
	word = regexp.MustCompile(`[A-Za-z_]\w*`)
	// notNames are texts, comments, fields, and calls of the function next.
	notNames    = regexp.MustCompile(`'[^'\\]*(\\.[^'\\]*)*'|--.*|[.:]\w+|\bnext\(`)
	newFunction = regexp.MustCompile(`^ *local function (\w+)\((.*)\)`)
	newLocals   = regexp.MustCompile(`^ *local ([\w, ]+?)( =|$)`)
	newInLoop   = regexp.MustCompile(`^ *for ([\w, ]+?) (=|in )`)
	known       = strings.Fields(`and break do else elseif end false for function if in local nil not or repeat return
		then true until while KEYS ARGV redis string table math tonumber tostring type unpack ipairs select pcall`)
)

// undefined returns, for each file that is included, the names in it that are not locals where they
// are. It relies on the indentation: a name is known from its line on, up to a line with less
// indentation.
func undefined(name string, withNeeds bool) map[string]map[string]bool {
	type local struct {
		name  string
		depth int
	}
	var locals []local
	define := func(depth int, names string) {
		for _, each := range word.FindAllString(names, -1) {
			locals = append(locals, local{each, depth})
		}
	}
	for _, in := range []Inputs{Keys(name), Args(name)} {
		names, _, _ := strings.Cut(strings.TrimPrefix(in.locals, "local "), "=")
		define(0, names)
	}
	found := map[string]map[string]bool{}
	expand(name, "", map[string]bool{}, func(file, line string) {
		code := strings.TrimRight(notNames.ReplaceAllString(line, ""), " \n")
		used := word.FindAllString(code, -1)
		if withNeeds {
			used = append(used, needed(line)...)
		}
		if len(used) == 0 {
			return
		}
		depth := len(line) - len(strings.TrimLeft(line, " "))
		locals = slices.DeleteFunc(locals, func(l local) bool { return l.depth > depth })
		if m := newFunction.FindStringSubmatch(code); m != nil {
			define(depth, m[1])
			define(depth+1, m[2])
		}
		if m := newInLoop.FindStringSubmatch(code); m != nil {
			define(depth+1, m[1])
		}
		declared := ""
		if m := newLocals.FindStringSubmatch(code); m != nil {
			declared = m[1]
			used = word.FindAllString(code[len(m[0]):], -1)
		}
		for _, each := range used {
			if !slices.Contains(known, each) && !slices.ContainsFunc(locals, func(l local) bool { return l.name == each }) {
				if found[file] == nil {
					found[file] = map[string]bool{}
				}
				found[file][each] = true
			}
		}
		define(depth, declared)
	})
	return found
}
