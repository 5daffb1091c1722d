//go:build ignore

// Messages DIR: writes the messages and help texts of Go files into DIR, for the prose linter. Each
// source file gets a text file there. The text file has each string on the line that the string has
// in the source.
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

// without has the folders whose strings users of the library never see.
var without = map[string]bool{"tests": true, "bench": true, "testdata": true}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: messages DIR")
		os.Exit(64)
	}
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != "." && (strings.HasPrefix(name, ".") || without[name]):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"), name == "replies.go": // the words of servers
			return nil
		}
		return extract(path, filepath.Join(os.Args[1], path+".txt"))
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "messages:", err)
		os.Exit(1)
	}
}

// extract writes the strings of one source file that are sentences or parts of sentences.
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
