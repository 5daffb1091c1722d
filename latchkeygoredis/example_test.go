package latchkeygoredis_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/latchkeygoredis"
	"github.com/latchkey-go/latchkey/latchkeytest"
)

// A program keeps its data with go-redis, and locks with Latchkey.
func ExampleOpen() {
	ctx := context.Background()
	server, err := latchkeytest.Start() // in a program: a Redis server
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()

	data := redis.NewClient(&redis.Options{Addr: strings.TrimPrefix(server.URL(), "redis://"), DB: 2})
	defer func() { _ = data.Close() }() // last, since work under a lock uses it
	client, err := latchkeygoredis.Open(ctx, data.Options(), latchkey.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = client.Close(ctx) }()

	err = client.NewLock("orders:42").Do(ctx, func(ctx context.Context) error {
		return data.Incr(ctx, "app:orders:42:charged").Err()
	})
	fmt.Println(err, data.Get(ctx, "app:orders:42:charged").Val())
	// Output: <nil> 1
}

// The locks have a user of their own, so that no bug of the application can remove one.
func ExampleClientOption() {
	ctx := context.Background()
	data := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: []string{"redis-1:6379", "redis-2:6379"}, Username: "app", Password: "SECRET",
	})
	defer func() { _ = data.Close() }()

	settings, err := latchkeygoredis.ClientOption(data.Options())
	if err != nil {
		log.Fatal(err)
	}
	settings.Username, settings.Password = "latchkey", "OTHER"
	client, err := latchkey.Open(ctx, settings, latchkey.Options{KeyPrefix: "orders:"})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = client.Close(ctx) }()
}
