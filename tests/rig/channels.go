package rig

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// Channels returns the channels that have a subscriber and contain the name, including sharded
// channels.
func (a *Admin) Channels(name string) (found []string) {
	a.tb.Helper()
	for _, client := range a.everyNode() {
		for _, question := range a.perScope("CHANNELS", "SHARDCHANNELS") {
			list, err := a.ask(client, "PUBSUB", question).AsStrSlice()
			a.check(err)
			found = append(found, list...)
		}
	}
	slices.Sort(found)
	return slices.DeleteFunc(slices.Compact(found), func(channel string) bool {
		return !strings.Contains(channel, name) || channel == sentinelHello
	})
}

// sentinelHello is the channel to which Sentinels subscribe.
const sentinelHello = "__sentinel__:hello"

// Subscribers returns how many connections subscribe to a channel, sharded or not.
func (a *Admin) Subscribers(channel string) (total int64) {
	a.tb.Helper()
	for _, client := range a.everyNode() {
		for _, question := range a.perScope("NUMSUB", "SHARDNUMSUB") {
			total += a.subscribers(client, question, channel)
		}
	}
	return total
}

func (a *Admin) subscribers(client rueidis.Client, question, channel string) int64 {
	a.tb.Helper()
	reply, err := a.ask(client, "PUBSUB", question, channel).AsIntMap() // of the channel alone
	a.check(err)
	return reply[channel]
}

// sharded reports whether locks use sharded messages on this server: a cluster of Redis 7 or later.
func (s *Server) sharded() bool { return s.Clustered() && isSince(7) }

// perScope returns those of the two queries that the server knows.
func (a *Admin) perScope(classic, sharded string) []string {
	if a.server.sharded() {
		return []string{classic, sharded}
	}
	return []string{classic}
}

// Publish sends a message in the way that locks use on this server, and returns how many
// connections received it.
func (a *Admin) Publish(channel, message string) int64 {
	a.tb.Helper()
	return a.Int(a.server.PublishCommand(), channel, message)
}

// PublishCommand is the command that sends messages of locks on this server.
func (s *Server) PublishCommand() string {
	if s.sharded() {
		return "SPUBLISH"
	}
	return "PUBLISH"
}

// Subscribe makes the command with which a client subscribes to messages of locks.
func (s *Server) Subscribe(client rueidis.Client, channel string) rueidis.Completed {
	if s.sharded() {
		return client.B().Ssubscribe().Channel(channel).Build()
	}
	return client.B().Subscribe().Channel(channel).Build()
}

// AwaitListening waits until [Cluster.Listening] returns nil.
func (c *Cluster) AwaitListening(clients int, name string) {
	c.tb.Helper()
	Eventually(c.tb, 20*time.Second, "clients listen where the slot is", func() error { return c.Listening(clients, name) })
}

// Listening returns an error unless that many clients that wait for the object have subscribed at
// the master of its slot. If messages are not sharded, any node passes them on, and Listening
// returns nil.
func (c *Cluster) Listening(clients int, name string) error {
	c.tb.Helper()
	if !c.Server().sharded() {
		return nil
	}
	_, admin := c.Serving(name)
	if all := admin.Strings("PUBSUB", "SHARDCHANNELS", "latchkey:"+name+":*-*"); len(all) != clients {
		return fmt.Errorf("%v", all)
	}
	return nil
}
