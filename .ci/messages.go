//go:build ignore

// Messages DIR: writes what Go files print, their messages and help texts, into DIR, for the prose linter.
// Each source file has a text file of its own there, with the text of a string on the line of that string.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// without holds folders whose strings nobody reads who uses the library.
var without = map[string]bool{"tests": true, "bench": true, "testdata": true}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "messages: want a folder")
		os.Exit(64)
	}
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != "." && (strings.HasPrefix(name, ".") || without[name]):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		return extract(path, filepath.Join(os.Args[1], path+".txt"))
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "messages:", err)
		os.Exit(1)
	}
}

// extract writes the strings of one source file that are sentences or parts of them.
func extract(source, target string) error {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, source, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	var text strings.Builder
	line := 1
	ast.Inspect(file, func(n ast.Node) bool {
		literal, ok := n.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		value, err := strconv.Unquote(literal.Value)
		if err != nil || len(strings.Fields(value)) < 3 {
			return true
		}
		if !strings.HasPrefix(literal.Value, "`") {
			value = strings.ReplaceAll(value, "\n", " ")
		}
		text.WriteByte(' ')
		for ; line < set.Position(literal.Pos()).Line; line++ {
			text.WriteByte('\n')
		}
		text.WriteString(value)
		line += strings.Count(value, "\n")
		return true
	})
	if text.Len() == 0 {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	return os.WriteFile(target, []byte(text.String()+"\n"), 0o600)
}
