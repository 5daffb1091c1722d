// Package lua has the scripts that the library runs on a server. It is not an API for other programs: it may change in
// any version.
package lua

import (
	"embed"
	"maps"
	"strings"
)

//go:embed */*.lua
var files embed.FS

// Text returns the script in a file, such as lock/acquire, with its fragments and without its comments.
func Text(name string) string {
	var text strings.Builder
	include(&text, name, map[string]bool{})
	return text.String()
}

// include writes a file and the fragments that it needs, except those that its script has seen. What an indented line
// includes belongs to its block, and is not seen after it.
func include(text *strings.Builder, name string, seen map[string]bool) {
	raw, err := files.ReadFile(name + ".lua")
	if err != nil {
		panic(err)
	}
	for line := range strings.Lines(string(raw)) {
		trimmed := strings.TrimSpace(line)
		fragment, includes := strings.CutPrefix(trimmed, "--@include ")
		switch {
		case includes && seen[fragment]:
		case includes && trimmed[0] != line[0]:
			include(text, fragment, maps.Clone(seen))
		case includes:
			seen[fragment] = true
			include(text, fragment, seen)
		case !strings.HasPrefix(trimmed, "--"):
			text.WriteString(line)
		}
	}
}
