//go:build ignore

// Snippets compiles the Go code in the pages for users: a page whose code does not compile fails
// CI. A block that begins with "package" is a program, a block with functions is a file, and any
// other block is the body of a function with the usual names declared. A snippet may leave a name
// unused.
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
	"docs/howto/idempotent-endpoint.md": `
var (
	user, key string
	w         http.ResponseWriter
	r         *http.Request
)

func pay(ctx context.Context, key string, token int64) ([]byte, error) { return nil, nil }
`,
	"docs/howto/migrations.md": "func migrate(context.Context) error { return nil }\n",
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
	"latchkey":        "github.com/latchkey-go/latchkey",
	"latchkeyotel":    "github.com/latchkey-go/latchkey/latchkeyotel",
	"latchkeycron":    "github.com/latchkey-go/latchkey/latchkeycron",
	"latchkeygoredis": "github.com/latchkey-go/latchkey/latchkeygoredis",
	"latchkeytest":    "github.com/latchkey-go/latchkey/latchkeytest",
	"rueidis":         "github.com/redis/rueidis",
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
	files := map[string]string{} // by the path that they seem to have
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			return err
		}
		for _, at := range block.FindAllSubmatchIndex(text, -1) {
			line := 1 + strings.Count(string(text[:at[2]]), "\n")
			name := fmt.Sprintf("%d", len(files))
			file := filepath.Join(scratch, name)
			if err := os.WriteFile(file, []byte(source(page, line, string(text[at[2]:at[3]]))), 0o600); err != nil {
				return err
			}
			files[filepath.Join("internal", "snippets", "snippet"+name, "snippet.go")] = file
		}
	}
	if output := compile(scratch, files); output != "" {
		return fmt.Errorf("these do not compile:\n%s", output)
	}
	fmt.Printf("%d snippets\n", len(files))
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

// source makes a file from a snippet that begins at a line of a page. The compiler reports the
// lines of the page.
func source(page string, line int, code string) string {
	at := fmt.Sprintf("//line %s:%d\n", page, line)
	if strings.HasPrefix(code, "package ") {
		return at + code
	}
	if code = at + code; !function.MatchString(code) {
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

// compile builds files that an overlay places in this module, each as a package, and returns the
// errors that matter.
func compile(scratch string, files map[string]string) string {
	overlay := filepath.Join(scratch, "overlay.json")
	list, err := json.Marshal(map[string]map[string]string{"Replace": files})
	if err == nil {
		err = os.WriteFile(overlay, list, 0o600)
	}
	if err != nil {
		return err.Error()
	}
	build := exec.Command("go", "build", "-gcflags=-e", "-overlay", overlay, "./internal/snippets/...")
	raw, failed := build.CombinedOutput()
	var complaints strings.Builder
	for line := range strings.Lines(string(raw)) {
		if failed != nil && !harmless.MatchString(line) {
			complaints.WriteString("  " + line)
		}
	}
	return complaints.String()
}
