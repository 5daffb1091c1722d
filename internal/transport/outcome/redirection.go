package outcome

import (
	"errors"
	"strings"

	"github.com/redis/rueidis"
)

// Redirection returns the address in a reply that names another node of the cluster. asks is true
// if the node is only about to serve the slot. rueidis panics at such a reply if it has no address.
func Redirection(err error) (address string, asks, ok bool) {
	var reply *rueidis.RedisError
	if !errors.As(err, &reply) || strings.Count(reply.Error(), " ") < 2 {
		return "", false, false
	}
	if address, ok = reply.IsMoved(); ok {
		return address, false, true
	}
	address, ok = reply.IsAsk()
	return address, true, ok
}
