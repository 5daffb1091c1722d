//go:build ignore

// Snippets compiles the Go code in the pages for users: a page whose code does not compile fails CI. A block that begins
// with "package" is a program, a block with functions is a file, and any other block is the body of a function with the
// usual names declared. A snippet may leave a name unused.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// prelude declares names that snippets use without a declaration.
const prelude = `
type order struct{ ID int }

var (
	errBusy, errDown error
	waited           interface{ Observe(float64) }
)

func work(context.Context) error         { return nil }
func load(context.Context) error         { return nil }
func store(context.Context, int64) error { return nil }
func change(context.Context) error       { return nil }
func charge(context.Context) error       { return nil }
func report(context.Context) error       { return nil }
`

// preludes declares further names for the snippets of one page.
var preludes = map[string]string{
	"docs/howto/from-redsync-and-redislock.md": `
var (
	data, a, b, c *redis.Client
	mutex         *redsync.Mutex
	obtained      *redislock.Lock
)
`,
	"docs/howto/monitoring.md": "var observer *latchkeyotel.Observer\n",
	"latchkeyotel/README.md":   "var observer *latchkeyotel.Observer\n",
	"docs/reference/barrier.md": `
var (
	steps             int
	errAgain, errLate error
)

func compute(step int)   {}
func announce(step int)  {}
`}

const frame = `func snippet(ctx context.Context, client *latchkey.Client, orders, lock *latchkey.Lock, hold *latchkey.Hold) error {
	{
%s
	}
	return nil
}
`

var imports = map[string]string{
	"context": "context", "errors": "errors", "log": "log", "sql": "database/sql", "sync": "sync",
	"testing": "testing", "synctest": "testing/synctest", "tls": "crypto/tls", "x509": "crypto/x509", "time": "time", "os": "os", "fmt": "fmt", "slog": "log/slog",
	"cmp": "cmp", "net": "net", "http": "net/http", "strings": "strings",
	"signal": "os/signal", "syscall": "syscall",
	"latchkey":     "github.com/latchkey-go/latchkey",
	"latchkeyotel": "github.com/latchkey-go/latchkey/latchkeyotel",
	"latchkeycron": "github.com/latchkey-go/latchkey/latchkeycron",
	"latchkeytest": "github.com/latchkey-go/latchkey/latchkeytest",
	"rueidis":      "github.com/redis/rueidis",
	// Other libraries for Redis and for jobs; they are dependencies of modules in the workspace.
	"auth":          "github.com/redis/go-redis/v9/auth",
	"gocron":        "github.com/go-co-op/gocron/v2",
	"goredis":       "github.com/go-redsync/redsync/v4/redis/goredis/v9",
	"redis":         "github.com/redis/go-redis/v9",
	"redislock":     "github.com/bsm/redislock",
	"redsync":       "github.com/go-redsync/redsync/v4",
	"rueidiscompat": "github.com/redis/rueidis/rueidiscompat",
	"uuid":          "github.com/google/uuid",
	// Libraries for metrics, which are dependencies of latchkeyotel/example.
	"metric":     "go.opentelemetry.io/otel/sdk/metric",
	"otel":       "go.opentelemetry.io/otel",
	"prometheus": "go.opentelemetry.io/otel/exporters/prometheus",
	"promhttp":   "github.com/prometheus/client_golang/prometheus/promhttp",
}

var (
	block    = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")
	function = regexp.MustCompile(`(?m)^func `)
	harmless = regexp.MustCompile(`declared and not used|^# |^\s*$|too many errors`)
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "snippets:", err)
		os.Exit(1)
	}
}

func run() error {
	pages, err := markdown()
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "snippets")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	bad, count := 0, 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			return err
		}
		for _, at := range block.FindAllSubmatchIndex(text, -1) {
			line := 1 + strings.Count(string(text[:at[2]]), "\n")
			output, err := compile(scratch, source(page, string(text[at[2]:at[3]])))
			if err != nil {
				return err
			}
			if output != "" {
				bad++
				fmt.Printf("%s:%d does not compile:\n%s", page, line, output)
			}
			count++
		}
	}
	fmt.Printf("%d snippets, %d broken\n", count, bad)
	if bad > 0 {
		return fmt.Errorf("%d snippets do not compile", bad)
	}
	return nil
}

// markdown returns the pages for users: README.md, docs/, and those of modules and examples.
func markdown() (pages []string, err error) {
	for _, pattern := range []string{"README.md", "latchkey*/README.md", "examples/*/README.md", "docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return nil, err
		}
		pages = append(pages, found...)
	}
	return pages, nil
}

// source makes a file from a snippet of a page.
func source(page, code string) string {
	if strings.HasPrefix(code, "package ") {
		return code
	}
	if !function.MatchString(code) {
		code = fmt.Sprintf(frame, code)
	}
	code = prelude + preludes[page] + code
	var head strings.Builder
	for name, path := range imports {
		if regexp.MustCompile(`\b` + name + `\.[A-Z]`).MatchString(code) {
			fmt.Fprintf(&head, "import %q\n", path)
		}
	}
	return "package snippet\n" + head.String() + code
}

// compile builds a file that an overlay places in this module, and returns the
// errors that matter.
func compile(scratch, text string) (string, error) {
	file, overlay := filepath.Join(scratch, "snippet.go"), filepath.Join(scratch, "overlay.json")
	here, err := filepath.Abs(filepath.Join("internal", "snippet", "snippet.go"))
	if err != nil {
		return "", err
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": {here: file}})
	if err != nil {
		return "", err
	}
	for path, content := range map[string][]byte{file: []byte(text), overlay: list} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return "", err
		}
	}
	build := exec.Command("go", "build", "-gcflags=-e", "-overlay", overlay, "-o", os.DevNull, "./internal/snippet")
	raw, failed := build.CombinedOutput()
	var complaints strings.Builder
	for line := range strings.Lines(string(raw)) {
		if failed != nil && !harmless.MatchString(line) {
			complaints.WriteString("  " + line)
		}
	}
	return complaints.String(), nil
}
