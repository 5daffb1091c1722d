package outcome

import (
	"regexp"
	"strings"
)

// replyClass is what an error reply says about the command.
type replyClass int

const (
	unknownReply replyClass = iota // executed or not: a proxy or an unknown server may have sent it
	refusedReply                   // not executed, now or later
	laterReply                     // not executed; the same server may execute it later
	awayReply                      // not executed by this server; the one behind a new connection may
	halfWayReply                   // a script was stopped, with part of its work done
)

// outcome returns the outcome of a command that got such a reply.
func (c replyClass) outcome() Outcome {
	switch c {
	case refusedReply:
		return Refused
	case laterReply, awayReply:
		return TryLater
	}
	return Uncertain
}

// replyCodes lists every code with which an error reply of Redis 6.2 to 8.2 or Valkey 7.2 to 9.1
// begins. docs/reference/errors.md shows it.
var replyCodes = map[string]replyClass{
	"ASK":           awayReply,    // the key is on another node; more often than rueidis follows
	"BUSY":          laterReply,   // a script or a module runs for too long
	"BUSYGROUP":     refusedReply, // streams
	"BUSYKEY":       refusedReply, // RESTORE
	"CLUSTERDOWN":   awayReply,    // this node sees no complete cluster
	"CROSSSLOT":     refusedReply, // the keys of a command are in several slots
	"DENIED":        refusedReply, // protected mode; the server then closes the connection
	"EXECABORT":     refusedReply, // transactions
	"INPROG":        laterReply,   // Sentinel
	"INVALIDOBJ":    refusedReply, // HyperLogLog
	"IOERR":         unknownReply, // MIGRATE
	"LOADING":       awayReply,    // it reads its data, from disk or from a new master
	"MASTERDOWN":    awayReply,    // a replica that has lost its master
	"MISCONF":       laterReply,   // it cannot write to its disk
	"MOVED":         awayReply,    // the slot is on another node; more often than rueidis follows
	"NOAUTH":        refusedReply, // the connection has no user
	"NOGOODPRIMARY": laterReply,   // FAILOVER
	"NOGOODSLAVE":   laterReply,   // Sentinel
	"NOGROUP":       refusedReply, // streams
	"NOMASTERLINK":  awayReply,    // a replica that is asked to replicate
	"NOPERM":        refusedReply, // the user lacks a permission
	"NOPROTO":       refusedReply, // HELLO
	"NOQUORUM":      laterReply,   // Sentinel
	"NOREPLICAS":    laterReply,   // min-replicas-to-write is not met
	"NOSCRIPT":      laterReply,   // EVALSHA; the text follows
	"NOSUB":         refusedReply, // UNSUBSCRIBE where nothing is subscribed
	"NOTBUSY":       refusedReply, // SCRIPT KILL
	"OOM":           refusedReply, // the server is full and may not evict
	"READONLY":      awayReply,    // a replica
	"REDIRECT":      awayReply,    // a replica of Valkey, for clients that can be redirected
	"TRYAGAIN":      laterReply,   // the keys of a command are on two nodes, because their slot moves
	"UNBLOCKED":     awayReply,    // the server became a replica while a command waited
	"UNKILLABLE":    refusedReply, // SCRIPT KILL
	"WRONGPASS":     refusedReply, // AUTH
	"WRONGTYPE":     refusedReply, // the key holds something else
}

// ownCodes is how the codes begin that this library's own scripts raise.
const ownCodes = "LATCHKEY_"

// genericTexts are the errors without a code (the server puts ERR in front) that decide the outcome
// of a command of this library, by how they begin. Nothing else is certain: proxies send texts of
// their own, with ERR or without.
var genericTexts = []struct {
	begins string
	class  replyClass
}{
	{"unknown command", refusedReply},
	{"unknown subcommand", refusedReply},
	{"Unknown subcommand", refusedReply},
	{"Unknown PUBSUB subcommand", refusedReply},
	{"'CLUSTER INFO' not supported", refusedReply}, // miniredis, the embedded server of tests
	{"wrong number of arguments for '", refusedReply},
	{"syntax error", refusedReply},
	{"Syntax error in HELLO option", refusedReply},
	{"Protocol version is not an integer", refusedReply},
	{"Protocol error", refusedReply},
	{"value is not an integer or out of range", refusedReply},
	{"invalid expire time in", refusedReply},
	{"timeout is negative", refusedReply},
	{"timeout is not an integer", refusedReply},
	{"invalid cursor", refusedReply},
	{"Number of keys can't be", refusedReply},
	{"Error compiling script", refusedReply},
	{"Error running script", refusedReply}, // a fault of the script, unless it has a form of scriptError
	{"DB index is out of range", refusedReply},
	{"invalid DB index", refusedReply},
	{"SELECT is not allowed in cluster mode", refusedReply},
	{"This instance has cluster support disabled", refusedReply},
	{"operation not permitted", refusedReply},
	{"invalid password", refusedReply},
	{"AUTH <password> called without any password", refusedReply},
	{"Client sent AUTH, but no password is set", refusedReply},
	{"Client names cannot contain", refusedReply},
	{"Unrecognized option '", refusedReply},
	{"no permission", refusedReply},
	{"Can't execute '", refusedReply}, // a connection that has subscribed, RESP2
	{"Command not allowed inside a transaction", refusedReply},
	{"Replica can't interact with the keyspace", refusedReply},
	{"No such master with that name", refusedReply}, // Sentinel
	{"max number of clients", laterReply},
	{"WAIT cannot be used with replica instances", awayReply},
}

// raisedTexts is genericTexts for the errors of commands in a script. Everything else that a script
// raises is a refusal: the next attempt would raise it again.
var raisedTexts = []struct {
	begins string
	class  replyClass
}{
	{"Script attempted to access a non local key in a cluster node", halfWayReply},
	{"Script attempted to access a slot not served", halfWayReply},
	{"Unable to execute command '", halfWayReply}, // … undeclared keys were accessed during rehashing of the slot
	{"Script attempted to execute a command while the cluster is down", awayReply},
	{"Script attempted to execute a write command while the cluster is down", awayReply},
	{"Can not execute a command '", awayReply},       // … while the cluster is down
	{"Can not execute a write command '", awayReply}, // … while the cluster is down and readonly
	{"Can not execute the command on a stale replica", awayReply},
	{"Script killed by user with", laterReply}, // possible only before its first write
}

// scriptError matches an error that a command raised in a script: as Redis 6.2 reports it, with the
// place in front, twice if the server itself refused the command; and as newer servers do, with the
// place behind, where Valkey 9 omits the digest. The last form is that of miniredis.
var scriptError = regexp.MustCompile(`(?s)^Error running script \(call to f_[0-9a-f]{40}\): ` +
	`@user_script:\d+: (?:@user_script: \d+: -?)?(.*)$` +
	`|^(.*) script: (?:[0-9a-f]{40}, )?on @user_script:\d+\.$` +
	`|^Error compiling script \(new function\): (?:<string>)?:\d+: (.*?)\s+stack traceback:.*$`)

// errorReply is the text of an error reply, taken apart.
type errorReply struct {
	code   string // the first word if it is a code, otherwise ""
	text   string // all of it
	raised bool   // by a command in a script
}

// parseReply takes a reply apart. rueidis has removed ERR from the text.
func parseReply(text string) errorReply {
	text = strings.TrimPrefix(text, "ERR ")
	if code := codeOf(text); code != "" {
		return errorReply{code: code, text: text, raised: scriptError.MatchString(text)}
	}
	if parts := scriptError.FindStringSubmatch(text); parts != nil {
		inner := strings.TrimPrefix(parts[1]+parts[2]+parts[3], "ERR ")
		return errorReply{code: codeOf(inner), text: inner, raised: true}
	}
	return errorReply{text: text}
}

// StoppedHalfWay reports whether an error is a refusal that a command raised in a script, because
// of a missing permission or a fault: what the script did before that stays done.
func StoppedHalfWay(err error) bool {
	return isReply(err, func(r errorReply) bool {
		return r.raised && r.class() == refusedReply && (r.code == "" || r.code == "NOPERM")
	})
}

// codeOf returns the first word of a text if that is a known code.
func codeOf(text string) string {
	word, _, _ := strings.Cut(text, " ")
	word = strings.TrimRight(word, "\r\n")
	if _, known := replyCodes[word]; known || strings.HasPrefix(word, ownCodes) {
		return word
	}
	return ""
}

// class returns what the reply says about the command. Only its beginning decides, because the rest
// may contain names and arguments of the caller.
func (r errorReply) class() replyClass {
	if r.code != "" {
		if class, known := replyCodes[r.code]; known {
			return class
		}
		return refusedReply // by a script of this library
	}
	texts, class := genericTexts, unknownReply
	if r.raised {
		texts, class = raisedTexts, refusedReply
	}
	for _, each := range texts {
		if strings.HasPrefix(r.text, each.begins) {
			return each.class
		}
	}
	return class
}
