package rig

import (
	"cmp"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// The backends, in the order in which they are tried. The topologies are used only on request.
const (
	kindURL       = "url"
	kindServer    = "server"
	kindSentinel  = "sentinel"
	kindCluster   = "cluster"
	kindContainer = "container"
	kindEmbedded  = "embedded"
)

// The environment variables that control the choice.
const (
	envURL     = "LATCHKEY_TEST_REDIS"   // URL of a server that is already running
	envBackend = "LATCHKEY_TEST_BACKEND" // forces server, sentinel, cluster, container or embedded
	envImage   = "LATCHKEY_TEST_IMAGE"   // image for the container backend
	envServer  = "LATCHKEY_TEST_SERVER"  // server binary that the rig starts, instead of the one in PATH
)

// openShared starts the server that the whole test binary uses.
func openShared() (err error) {
	shared, err = openBackend()
	return err
}

// openBackend uses the forced backend, and fails if that is not available. Otherwise it uses the
// first backend that this machine offers.
func openBackend() (*Server, error) {
	switch forced := os.Getenv(envBackend); forced {
	case "":
		return firstBackend()
	case kindSentinel:
		return startSharedSentinel()
	case kindCluster:
		return startSharedCluster()
	case kindServer, kindContainer, kindEmbedded:
		return startPrivate(forced, nil)
	default:
		return nil, fmt.Errorf("%s=%q is not server, sentinel, cluster, container or embedded", envBackend, forced)
	}
}

func firstBackend() (*Server, error) {
	switch {
	case os.Getenv(envURL) != "":
		return useURL(os.Getenv(envURL))
	case serverBinary() != "":
		return startLocal(nil)
	case os.Getenv(envImage) != "" && dockerHealthy():
		return startContainer(nil)
	default:
		return startEmbedded()
	}
}

// useURL uses a server that somebody else runs: it is never reconfigured, paused or flushed.
func useURL(text string) (*Server, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "redis" {
		return nil, fmt.Errorf("%s: the proxies of the rig need a redis:// URL", envURL)
	}
	return &Server{kind: kindURL, detail: u.Host, url: *u, able: Stats | Single | Speed}, nil
}

// serverBinary returns the configured server binary, or redis-server or valkey-server in PATH, or
// "" if there is none.
func serverBinary() string {
	if named := os.Getenv(envServer); named != "" {
		return named
	}
	redis, _ := exec.LookPath("redis-server")
	valkey, _ := exec.LookPath("valkey-server")
	return cmp.Or(redis, valkey)
}

// serverVersion is the name and the version of the server, such as "redis-server 7.0.15", or as
// much of it as the server prints.
var serverVersion = sync.OnceValue(func() string {
	binary := serverBinary()
	text, _ := exec.Command(binary, "--version").Output()
	_, version, _ := strings.Cut(string(text), " v=")
	version, _, _ = strings.Cut(version, " ")
	return strings.TrimSpace(filepath.Base(binary) + " " + version)
})

// knowsShards reports whether the server is Redis 8, Valkey 8 or later, which keeps an id of each
// shard of a cluster.
func knowsShards() bool { return isSince(8) }

// isSince reports whether the server has this major version or a later one.
func isSince(major int) bool {
	_, version, _ := strings.Cut(serverVersion(), " ")
	text, _, _ := strings.Cut(version, ".")
	number, err := strconv.Atoi(text)
	return err == nil && number >= major
}
