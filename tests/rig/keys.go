package rig

import (
	"slices"
	"strings"

	"github.com/redis/rueidis"
)

// keyless are the commands without a key that the rig and the tests use.
var keyless = []string{
	"ACL", "CLIENT", "CLUSTER", "CONFIG", "DBSIZE", "ECHO", "FLUSHALL", "INFO", "PING", "PUBLISH", "PUBSUB", "REPLICAOF",
	"SCAN", "SCRIPT", "SLOWLOG", "TIME", "WAIT",
}

// keyAt returns the index of the first key of a command, or 0 if it has none.
func keyAt(words []string) int {
	name := strings.ToUpper(words[0])
	switch {
	case slices.Contains(keyless, name) || len(words) < 2:
		return 0
	case !strings.HasPrefix(name, "EVAL"):
		return 1
	case len(words) > 3 && words[2] != "0":
		return 3
	}
	return 0
}

// Build makes a command of words. A cluster client sends it to the node that has the key.
func Build(client rueidis.Client, words ...string) rueidis.Completed {
	command := client.B().Arbitrary(words[0])
	key := keyAt(words)
	if key == 0 {
		return command.Args(words[1:]...).Build()
	}
	return command.Args(words[1:key]...).Keys(words[key]).Args(words[key+1:]...).Build()
}
