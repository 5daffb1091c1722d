package rig

import (
	"net/url"

	"github.com/alicebob/miniredis/v2"
)

// startEmbedded runs a server inside the test binary. Its keys expire by the clock of the machine,
// like those of a real server.
func startEmbedded() (*Server, error) {
	m := miniredis.NewMiniRedis()
	m.ClockTTL(true)
	if err := m.StartAddr("127.0.0.1:0"); err != nil {
		return nil, err
	}
	return &Server{
		kind:   kindEmbedded,
		detail: "miniredis in this process",
		url:    url.URL{Scheme: "redis", Host: m.Addr()},
		able:   Private | Single,
		stop:   m.Close,
	}, nil
}
