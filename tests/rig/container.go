package rig

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
	"github.com/testcontainers/testcontainers-go/wait"
)

const redisPort = "6379/tcp"

// The rig removes its containers itself, because the reaper of testcontainers would need one more
// image. It also discards the log of testcontainers, which would bury the output of the tests.
func init() {
	if os.Getenv(envReaper) == "" {
		_ = os.Setenv(envReaper, "true")
	}
	log.SetDefault(log.NewNoopLogger())
}

// envReaper switches the reaper off when it is "true".
const envReaper = "TESTCONTAINERS_RYUK_DISABLED"

// dockerHealthy reports whether a Docker daemon answers.
func dockerHealthy() bool {
	provider, err := testcontainers.ProviderDocker.GetProvider()
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(background(), 5*time.Second)
	defer cancel()
	return provider.Health(ctx) == nil
}

// startContainer runs the image of LATCHKEY_TEST_IMAGE, whose command must be a Redis or Valkey
// server.
func startContainer(settings []string) (*Server, error) {
	image := os.Getenv(envImage)
	if image == "" {
		return nil, fmt.Errorf("%s is not set", envImage)
	}
	ctx, cancel := context.WithTimeout(background(), time.Minute)
	defer cancel()
	c, err := runContainer(ctx, image, settings)
	if err != nil {
		return nil, errors.Join(err, testcontainers.TerminateContainer(c))
	}
	return containerServer(ctx, c, image)
}

func runContainer(ctx context.Context, image string, settings []string) (testcontainers.Container, error) {
	c, err := testcontainers.Run(ctx, image,
		testcontainers.WithExposedPorts(redisPort),
		testcontainers.WithCmdArgs(settings...),
		testcontainers.WithWaitStrategy(wait.ForListeningPort(redisPort).SkipInternalCheck()),
	)
	if c == nil { // a nil pointer in the interface would not be nil
		return nil, err
	}
	return c, err
}

func containerServer(ctx context.Context, c testcontainers.Container, image string) (*Server, error) {
	stop := func() { _ = testcontainers.TerminateContainer(c) }
	addr, err := c.PortEndpoint(ctx, redisPort, "")
	if err == nil {
		err = awaitPong(addr, nil) // the port opens before the server behind it is ready
	}
	if err != nil {
		stop()
		return nil, err
	}
	return &Server{
		kind:   kindContainer,
		detail: image,
		url:    url.URL{Scheme: "redis", Host: addr},
		able:   Private | Stats | Settings | Single | Speed,
		stop:   stop,
	}, nil
}
