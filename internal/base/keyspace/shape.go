package keyspace

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/latchkey-go/latchkey/internal/base/identity"
)

// The forms of the keys of each kind of object. The scripts follow the same rules in
// lua/shared/shape_hash.lua and lua/shared/shape_token.lua, and a test gives both the same
// examples.
//
//	type    content                                          what it is
//	hash    fields are owners, values are counts             a lock
//	        the same, and mode = read or write               a read/write lock
//	        the fields of lua/barrier/state.lua              a barrier; foreign to the scripts of locks
//	        the fields of lua/once/acquire.lua               a Once; foreign to the scripts of locks
//	        anything else                                    foreign
//	string  an integer of at most 20 characters              a number: a semaphore, a latch or
//	                                                         a counter; the keys next to it
//	                                                         may tell which
//	        as lua/rate/write.lua writes it                  a rate limiter; foreign to the others
//	        a token, with an expiry                          a mutex
//	        an owner, without an expiry                      a mutex, damaged
//	        anything else                                    foreign
//	other                                                    foreign
//
// An owner is a UUID, a colon and an integer: Redisson's threads and the owners of this library.
// Redisson's transactions and its writers append ":" and more; guests of this library append "@"
// and more. A lock always expires. A lock with an owner and without an expiry is damaged, not
// foreign: waiters wait for it and report it.
//
// A token is what clients of the recipe SET NX PX store, of 8 to 1024 bytes:
//
//	not UTF-8, 64 bytes at most     random bytes
//	begins with 22 characters out   redis-py (32 hex digits), node-redlock (32), redlock-py (22
//	of A-Z a-z 0-9 _ -              letters and digits), redislock (22, then metadata of any
//	                                kind), UUIDs, the owners of this library
//	other text                      redsync (base64), ShedLock, what users make up; but no
//	                                blanks, no JSON object or array, and not only digits,
//	                                signs and points in up to 20 characters
//
// Some data of applications has the same form as a token, such as the id of a session. So a call
// that takes only a name never removes a string that is not exactly an owner.
//
// Scripts read only 4 fields of a hash, since data of an application may be large; inspection reads
// all of a lock.

const (
	minToken      = 8
	longestToken  = 1024
	longestBytes  = 64
	longestNumber = 20
)

var (
	// OwnerShape is the form of an owner, and of what begins with one.
	OwnerShape  = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}:-?[0-9]+($|[:@])`)
	countShape  = regexp.MustCompile(`^[0-9]+$`)
	numberShape = regexp.MustCompile(`^-?[0-9]+$`)
	randomStart = regexp.MustCompile(`^[A-Za-z0-9_-]{22}`)
)

// IsNumber reports whether a string is the count of a semaphore or of a latch.
func IsNumber(value string) bool {
	return len(value) <= longestNumber && numberShape.MatchString(value)
}

// IsToken reports whether a string is the token of a lock.
func IsToken(value string, expires bool) bool {
	switch {
	case len(value) < minToken, len(value) > longestToken, !expires && !OwnerShape.MatchString(value):
		return false
	case !utf8.ValidString(value):
		return len(value) <= longestBytes
	case randomStart.MatchString(value):
		return true
	}
	return !strings.ContainsAny(value, " \t\n\v\f\r") && value[0] != '{' && value[0] != '[' &&
		(len(value) > longestNumber || strings.Trim(value, "-+.0123456789") != "")
}

// HashShape returns the kind of lock that a hash is, or KindUnknown, and its owners.
func HashShape(content []string) (Kind, []identity.Holder) {
	found := KindLock
	var list []identity.Holder
	for pair := range slices.Chunk(content, 2) {
		field, value := pair[0], pair[1]
		switch count, _ := strconv.Atoi(value); {
		case field == "mode" && (value == "read" || value == "write"):
			found = KindRWLock
		case !OwnerShape.MatchString(field) || !countShape.MatchString(value):
			return KindUnknown, nil
		case strings.Contains(field, "@"):
			// The part of a guest, which the owner's own field includes.
		default:
			list = append(list, identity.Holder{Owner: identity.Of(field), Count: count})
		}
	}
	if len(list) == 0 {
		return KindUnknown, nil
	}
	for i, h := range list {
		list[i] = identity.ReadHolder(h.Owner.String(), h.Count, found == KindRWLock)
	}
	return found, list
}

// OnceShape reports whether a hash is a Once, and returns the owner that runs, if one does.
func OnceShape(content []string) (runner []identity.Holder, is bool) {
	var token, other bool
	for pair := range slices.Chunk(content, 2) {
		switch field, value := pair[0], pair[1]; {
		case field == "once":
			token = countShape.MatchString(value)
		case field == "result":
			other = true
		case OwnerShape.MatchString(field) && strings.Count(field, ":") == 1 && !strings.Contains(field, "@"):
			runner, other = []identity.Holder{{Owner: identity.Of(field), Count: 1}}, true
		}
	}
	return runner, token && other && len(content) == 4
}

// IsBarrier reports whether a hash is a barrier.
func IsBarrier(content []string) bool {
	var fields int
	for pair := range slices.Chunk(content, 2) {
		switch {
		case pair[0] == "stage" && (pair[1] == "enter" || pair[1] == "run"):
		case !countShape.MatchString(pair[1]):
			return false
		case pair[0] == "generation", pair[0] == "arrived":
			fields++
		case pair[0] != "parties":
			return false
		}
	}
	return fields == 2
}

// ForeignNoun describes data of an application in words.
func ForeignNoun(redisType string, expires bool, content []string) string {
	switch {
	case redisType == "hash":
		return "a hash without any lock owner"
	case redisType == "zset":
		return "a sorted set"
	case redisType != "string":
		return "a " + redisType
	case len(content) == 1 && !expires && IsToken(content[0], true):
		return "a string that does not expire"
	}
	return "a string of an application"
}
