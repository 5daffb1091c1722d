package outcome

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// digest stands for that of a script.
const digest = "0123456789abcdef0123456789abcdef01234567"

// classNames are the words of docs/reference/errors.md.
var classNames = map[string]replyClass{
	"refused": refusedReply, "later": laterReply, "elsewhere": awayReply, "unknown": unknownReply,
}

// The page and the table have the same codes, with the same classes.
func TestReplyCodes_are_those_of_the_page(t *testing.T) {
	page, err := os.ReadFile("../../../docs/reference/errors.md")
	require.NoError(t, err)
	documented := map[string]replyClass{}
	row := regexp.MustCompile("(?m)^\\| (`[A-Z]{2,}`.*?) \\| (\\w+) \\|")
	for _, cells := range row.FindAllStringSubmatch(string(page), -1) {
		for _, code := range regexp.MustCompile("`([A-Z]+)`").FindAllStringSubmatch(cells[1], -1) {
			class, known := classNames[cells[2]]
			if code[1] != "ERR" && known {
				documented[code[1]] = class
			}
		}
	}
	require.Equal(t, replyCodes, documented)
}

// Each code means the same in every form in which servers send it.
func TestReplyCodes_in_each_form(t *testing.T) {
	for code, want := range replyCodes {
		for _, text := range []string{
			code, code + " for a reason", "ERR " + code + " for a reason",
			code + " for a reason. script: " + digest + ", on @user_script:7.",
			code + " for a reason. script: on @user_script:7.",
			"Error running script (call to f_" + digest + "): @user_script:7: " + code + " for a reason",
			"Error compiling script (new function): :7: " + code + " for a reason stack traceback:  [G]: in function 'call'",
			"ERR Error running script (call to f_" + digest + "): @user_script:7: @user_script: 7: -" + code + " for a reason ",
			"ERR Error compiling script (new function): :7: " + code + " for a reason stack traceback:  [G]: in function 'call'",
		} {
			require.Equal(t, want, parseReply(text).class(), "%s", text)
			require.Equal(t, code, parseReply(text).code, "%s", text)
		}
	}
}

// Errors without a code, as servers send them.
func TestReplies_without_a_code(t *testing.T) {
	raised := func(text string) []string {
		return []string{
			"ERR " + text + " script: " + digest + ", on @user_script:1.",
			"ERR " + text + " script: on @user_script:1.",
			"ERR Error running script (call to f_" + digest + "): @user_script:1: @user_script: 1: " + text,
		}
	}
	for class, texts := range map[replyClass][]string{
		refusedReply: append([]string{
			"ERR unknown command 'EVALSHA', with args beginning with: 'x' '1' 'TASK 1' ",
			"ERR unknown command `EVALSHA`, with args beginning with: `x`, `1`, `READONLY MOVED 1 a:1`, ",
			"ERR unknown command 'SET', with args beginning with: 'Script attempted to access a non local key in a cluster node'",
			"NOPERM No permissions to access a key 'READONLY LOADING BUSY '", "WRONGTYPE MOVED ASK ",
			"LATCHKEY_GONE LOADING the hold is over", "ERR This instance has cluster support disabled",
			"ERR wrong number of arguments for 'eval' command", "ERR syntax error",
			"ERR Error compiling script (new function): user_script:1: unexpected symbol near '<eof>'",
			"ERR Error running script f_" + digest + ", execution failure",
		}, append(raised("value is not an integer or out of range"), raised("user_script:1: boom READONLY ")...)...),
		laterReply:   append(raised("Script killed by user with SCRIPT KILL..."), "ERR max number of clients reached"),
		awayReply:    append(raised("Can not execute the command on a stale replica"), "ERR WAIT cannot be used with replica instances. Please"),
		halfWayReply: raised("Script attempted to access a non local key in a cluster node"),
		unknownReply: {
			"upstream failure", "ERR Connection timed out", "ERR Connection refused", "ERR", "", "oops READONLY ",
			"ERR backend of 'MOVED 1 a:1' is down", "READONLYISH", "readonly mode", "no upstream host",
			"ERR timed out script: " + digest + ", on @user_script:1. again",
			"ERR proxy: Error running script (call to f_" + digest + "): @user_script:1: READONLY ",
		},
	} {
		for _, text := range texts {
			require.Equal(t, class, parseReply(text).class(), "%q", text)
		}
	}
}

// No part of a reply that a caller can choose changes the class.
func FuzzReplies_are_classified_by_their_beginning(f *testing.F) {
	for _, name := range []string{"TASK 1", "READONLY x", "' script: on @user_script:1", "Error running script", "\r\nMOVED 1 a:1"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		name = strings.TrimSuffix(name, ".")
		for _, text := range []string{"ERR unknown command 'EVAL', with args beginning with: '" + name + "' ", "NOPERM key '" + name + "'"} {
			require.Equal(t, refusedReply, parseReply(text).class(), "%q", text)
		}
		require.Equal(t, laterReply, parseReply("BUSY with "+name).class())
	})
}
