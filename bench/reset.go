package main

import (
	"context"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// reset empties the server when the connections of the last measurement are gone.
func (s *server) reset(ctx context.Context) error {
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{s.addr}, DisableCache: true, ForceSingleClient: true, PipelineMultiplex: -1,
	})
	if err != nil {
		return err
	}
	defer client.Close()
	for range 200 {
		info, err := client.Do(ctx, client.B().Info().Section("clients").Build()).ToString()
		if err != nil {
			return err
		}
		if strings.Contains(info, "connected_clients:1\r") {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return client.Do(ctx, client.B().Flushall().Build()).Error()
}

// version returns the name and version of the server.
func (s *server) version(ctx context.Context) string {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{s.addr}, DisableCache: true})
	if err != nil {
		return "unknown server"
	}
	defer client.Close()
	info, err := client.Do(ctx, client.B().Info().Section("server").Build()).ToString()
	if err != nil {
		return "unknown server"
	}
	name, version := "Redis", ""
	for line := range strings.Lines(info) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch key {
		case "valkey_version":
			return "Valkey " + value
		case "redis_version":
			version = value
		}
	}
	return name + " " + version
}
