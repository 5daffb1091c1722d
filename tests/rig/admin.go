package rig

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
)

// Admin inspects a server over connections of its own. It sees all nodes of a cluster.
type Admin struct {
	tb     place
	server *Server
	client rueidis.Client
	nodes  []rueidis.Client // of a cluster: one client per node, which uses only that node
}

// NewAdmin connects an Admin to the server itself, past any proxy.
func NewAdmin(tb testing.TB, server *Server) *Admin {
	tb.Helper()
	a := &Admin{tb: here(tb), server: server, client: server.Raw(tb)}
	if server.Clustered() {
		a.nodes = a.connect()
	}
	return a
}

// connect opens a connection to each node.
func (a *Admin) connect() []rueidis.Client {
	a.tb.Helper()
	all := make([]rueidis.Client, len(a.server.nodes))
	for i, addr := range a.server.nodes {
		client, err := single(addr)
		a.check(err)
		a.tb.Cleanup(client.Close)
		all[i] = client
	}
	return all
}

// everyNode returns one client for each data node; masters returns one for each node that takes
// commands.
func (a *Admin) everyNode() []rueidis.Client {
	if !a.server.Clustered() {
		return []rueidis.Client{a.client}
	}
	return a.nodes
}

func (a *Admin) masters() []rueidis.Client { return a.everyNode()[:max(a.server.masters, 1)] }

// Do runs a command and returns its reply. A Redis error fails the test, a nil reply does not. In a
// cluster, a command without a key goes to all masters, and Do returns the reply of the first.
func (a *Admin) Do(words ...string) rueidis.RedisResult {
	a.tb.Helper()
	if !a.server.Clustered() || keyAt(words) > 0 {
		return a.ask(a.client, words...)
	}
	var first rueidis.RedisResult
	for i, client := range a.masters() {
		if result := a.ask(client, words...); i == 0 {
			first = result
		}
	}
	return first
}

// adminPatience is longer than any command of a test takes, so that none waits forever.
const adminPatience = time.Minute

func (a *Admin) ask(client rueidis.Client, words ...string) rueidis.RedisResult {
	a.tb.Helper()
	ctx, cancel := context.WithTimeout(background(), adminPatience)
	defer cancel()
	result := client.Do(ctx, Build(client, words...))
	if err := result.Error(); err != nil && !rueidis.IsRedisNil(err) {
		a.tb.Fatalf("rig: %s: %v", strings.Join(words, " "), err)
	}
	return result
}

// roundsToRead is more than the turns in which a server reads what one connection has sent.
const roundsToRead = 100

// Executed returns when the server has executed every command that reached it before. A server
// reads a part of each connection in turn, so several round trips of its own prove it.
func (a *Admin) Executed() {
	a.tb.Helper()
	for range roundsToRead {
		a.Do("PING")
	}
}

// Int runs a command and returns its reply as a number.
func (a *Admin) Int(words ...string) int64 {
	a.tb.Helper()
	n, err := a.Do(words...).AsInt64()
	a.check(err)
	return n
}

// Strings runs a command and returns its reply as a list.
func (a *Admin) Strings(words ...string) []string {
	a.tb.Helper()
	list, err := a.Do(words...).AsStrSlice()
	a.check(err)
	return list
}

// Text runs a command and returns its reply as a string, "" for nil.
func (a *Admin) Text(words ...string) string {
	a.tb.Helper()
	text, err := a.Do(words...).ToString()
	if !rueidis.IsRedisNil(err) {
		a.check(err)
	}
	return text
}

func (a *Admin) check(err error) {
	a.tb.Helper()
	if err != nil {
		a.tb.Fatalf("rig: %v", err)
	}
}

// Entry is a key as it is stored on the server.
type Entry struct {
	Type    string            // string, hash, list, zset, set
	String  string            // of a string
	Hash    map[string]string // of a hash
	Members []string          // of a list (in order), a set, or a zset with scores
	TTL     time.Duration     // -1 ms for a key without expiry
}

// NoTTL is the TTL of an [Entry] that never expires.
const NoTTL = -time.Millisecond

// Keys returns the keys that match a pattern of SCAN.
func (a *Admin) Keys(pattern string) (keys []string) {
	a.tb.Helper()
	for _, client := range a.masters() {
		keys = append(keys, a.keysOn(client, pattern)...)
	}
	return keys
}

func (a *Admin) keysOn(client rueidis.Client, pattern string) (keys []string) {
	a.tb.Helper()
	for cursor := uint64(0); ; {
		page, err := a.ask(client, "SCAN", strconv.FormatUint(cursor, 10), "MATCH", pattern, "COUNT", "1000").AsScanEntry()
		a.check(err)
		keys = append(keys, page.Elements...)
		if cursor = page.Cursor; cursor == 0 {
			return keys
		}
	}
}

// KeysOf returns the keys that contain a name, which may contain any characters.
func (a *Admin) KeysOf(name string) []string {
	a.tb.Helper()
	escape := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)
	return a.Keys("*" + escape.Replace(name) + "*")
}

// Dump returns type, content and TTL of every key that contains the name.
func (a *Admin) Dump(name string) map[string]Entry {
	a.tb.Helper()
	dump := make(map[string]Entry)
	for _, key := range a.KeysOf(name) {
		if entry := a.entry(key); entry.Type != "none" { // it may have expired in the meantime
			dump[key] = entry
		}
	}
	return dump
}

func (a *Admin) entry(key string) Entry {
	a.tb.Helper()
	e := Entry{Type: a.Text("TYPE", key), TTL: a.PTTL(key)}
	switch e.Type {
	case "string":
		e.String = a.Text("GET", key)
	case "hash":
		var err error
		e.Hash, err = a.Do("HGETALL", key).AsStrMap()
		a.check(err)
	case "list":
		e.Members = a.Strings("LRANGE", key, "0", "-1")
	case "set":
		e.Members = a.Strings("SMEMBERS", key)
	case "zset":
		e.Members = a.zset(key)
	}
	return e
}

func (a *Admin) zset(key string) []string {
	a.tb.Helper()
	scores, err := a.Do("ZRANGE", key, "0", "-1", "WITHSCORES").AsZScores()
	a.check(err)
	members := make([]string, len(scores))
	for i, s := range scores {
		members[i] = fmt.Sprintf("%s %.0f", s.Member, s.Score)
	}
	return members
}

// PTTL returns the TTL of a key: NoTTL without expiry, -2 ms if the key does not exist.
func (a *Admin) PTTL(key string) time.Duration {
	a.tb.Helper()
	return time.Duration(a.Int("PTTL", key)) * time.Millisecond
}

// Exists reports whether a key exists.
func (a *Admin) Exists(key string) bool { a.tb.Helper(); return a.Int("EXISTS", key) == 1 }

// Connections returns the number of connections to the server, or to the first master. It excludes
// its own connection, those of Sentinels and of the rig, and monitors (flag O): the server may not
// have noticed yet that one closed.
func (a *Admin) Connections() int {
	a.tb.Helper()
	n := -1
	for line := range strings.Lines(a.Text("CLIENT", "LIST")) {
		if !strings.Contains(line, " flags=O ") && !strings.Contains(line, " name=sentinel-") && !strings.Contains(line, " name="+rigName+" ") {
			n++
		}
	}
	return n
}

// CommandStats returns how often each command was executed since the server started. It counts
// commands inside scripts in addition to the script itself.
func (a *Admin) CommandStats() map[string]int64 {
	a.tb.Helper()
	stats := make(map[string]int64)
	for _, client := range a.masters() {
		text, err := a.ask(client, "INFO", "commandstats").ToString()
		a.check(err)
		count(stats, text)
	}
	return stats
}

// count adds up the command statistics of INFO.
func count(stats map[string]int64, info string) {
	for line := range strings.Lines(info) {
		name, rest, _ := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		calls, _, found := strings.Cut(rest, ",")
		if n, err := strconv.ParseInt(calls, 10, 64); found && err == nil {
			stats[name] += n
		}
	}
}

// Since returns what was executed after an earlier CommandStats, without the queries of the Admin
// itself.
func (a *Admin) Since(before map[string]int64) map[string]int64 {
	a.tb.Helper()
	diff := make(map[string]int64)
	for name, n := range a.CommandStats() {
		if n -= before[name]; n > 0 && name != "info" {
			diff[name] = n
		}
	}
	return diff
}
