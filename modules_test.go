package latchkey_test

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// goCommand runs the go command in the root of the repository and returns what it prints.
func goCommand(t *testing.T, args ...string) []byte {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), "go", args...).Output()
	require.NoError(t, err)
	return output
}

// A requirement of a module becomes a minimum version in every program that uses the module. A new
// requirement must be added here, with a reason.
func TestModuleRequirements(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"github.com/redis/rueidis":    "the client",
		"github.com/google/uuid":      "owners",
		"golang.org/x/sys":            "required by rueidis",
		"github.com/stretchr/testify": "tests",
		"go.yaml.in/yaml/v3":          "required by testify",
	}
	module := readModule(t, ".")
	for _, required := range module.Require {
		assert.Contains(t, want, required.Path, "go.mod requires what is not in the list")
	}
	assert.Empty(t, module.Replace, "go.mod has replace directives, which do nothing for users")
}

// A program that uses the library compiles these modules, and no others.
func TestModulesThatUsersCompile(t *testing.T) {
	t.Parallel()
	list := func(pattern string) []string {
		output := goCommand(t, "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", pattern)
		modules := strings.Fields(string(output))
		slices.Sort(modules)
		return slices.Compact(modules)
	}
	assert.Subset(t, []string{
		"github.com/latchkey-go/latchkey", "github.com/redis/rueidis", "github.com/google/uuid", "golang.org/x/sys",
	}, list("."))
	assert.Subset(t, []string{
		"github.com/latchkey-go/latchkey", "github.com/redis/rueidis", "github.com/google/uuid", "golang.org/x/sys",
		"github.com/latchkey-go/latchkey/latchkeytest", "github.com/alicebob/miniredis/v2", "github.com/yuin/gopher-lua",
	}, list("./latchkeytest"))
}

// The go command refuses to install a program from a module with replace directives, and ignores
// the replace directives of required modules.
func TestModulesBesideCanBeReleased(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"cmd/latchkey", "latchkeytest", "latchkeyotel", "latchkeycron", "latchkeygoredis"} {
		module := readModule(t, folder)
		assert.Empty(t, module.Replace, folder)
		assert.Empty(t, module.Exclude, folder)
		assert.Contains(t, module.requires(), "github.com/latchkey-go/latchkey", "%s does not require the library", folder)
	}
}

// latchkeytest requires its server, and what its clients need; testify is for its tests.
func TestModuleRequirementsOfLatchkeytest(t *testing.T) {
	t.Parallel()
	assert.ElementsMatch(t, []string{
		"github.com/latchkey-go/latchkey", "github.com/alicebob/miniredis/v2",
		"github.com/redis/rueidis", "github.com/stretchr/testify",
	}, readModule(t, "latchkeytest").requires())
}

// latchkeyotel requires only the interfaces of OpenTelemetry, and no implementation.
func TestModuleRequirementsOfLatchkeyotel(t *testing.T) {
	t.Parallel()
	assert.ElementsMatch(t, []string{
		"github.com/latchkey-go/latchkey",
		"go.opentelemetry.io/otel", "go.opentelemetry.io/otel/metric", "go.opentelemetry.io/otel/trace",
	}, readModule(t, "latchkeyotel").requires())
}

// latchkeycron requires gocron and what gocron requires; the rest is for tests.
func TestModuleRequirementsOfLatchkeycron(t *testing.T) {
	t.Parallel()
	assert.ElementsMatch(t, []string{
		"github.com/latchkey-go/latchkey", "github.com/go-co-op/gocron/v2", "github.com/latchkey-go/latchkey/latchkeytest",
		"github.com/google/uuid", "github.com/jonboulle/clockwork", "github.com/stretchr/testify",
	}, readModule(t, "latchkeycron").requires())
}

// latchkeygoredis converts the settings of go-redis into those of rueidis; the rest is for tests.
func TestModuleRequirementsOfLatchkeygoredis(t *testing.T) {
	t.Parallel()
	assert.ElementsMatch(t, []string{
		"github.com/latchkey-go/latchkey", "github.com/redis/rueidis", "github.com/redis/go-redis/v9",
		"github.com/latchkey-go/latchkey/latchkeytest", "github.com/stretchr/testify",
	}, readModule(t, "latchkeygoredis").requires())
}

// The examples need only latchkeytest and databases that support fencing.
func TestModuleRequirementsOfExamples(t *testing.T) {
	t.Parallel()
	assert.ElementsMatch(t, []string{
		"github.com/latchkey-go/latchkey", "github.com/latchkey-go/latchkey/latchkeytest", "github.com/redis/rueidis",
		"github.com/jackc/pgx/v5", "modernc.org/sqlite",
	}, readModule(t, "examples").requires())
}

// moduleFile is a go.mod.
type moduleFile struct {
	Require []struct {
		Path     string
		Indirect bool
	}
	Replace []any
	Exclude []any
}

func readModule(t *testing.T, folder string) (module moduleFile) {
	t.Helper()
	require.NoError(t, json.Unmarshal(goCommand(t, "mod", "edit", "-json", folder+"/go.mod"), &module))
	return module
}

// requires returns the paths of the direct requirements.
func (m moduleFile) requires() (paths []string) {
	for _, required := range m.Require {
		if !required.Indirect {
			paths = append(paths, required.Path)
		}
	}
	return paths
}
