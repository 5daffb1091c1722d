package testredis

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// ReplyError is an error reply of the server.
type ReplyError string

// Error returns the text of the reply.
func (e ReplyError) Error() string { return string(e) }

// Do executes a command. The reply is nil, an int64, a string, a []any or a ReplyError.
func (s *Clocked) Do(words ...string) any {
	s.write(words)
	reply := s.read()
	if err, is := reply.(ReplyError); is && strings.HasPrefix(string(err), "NOSCRIPT") {
		words = append([]string{"EVAL", s.loaded[words[1]]}, words[2:]...)
		s.write(words)
		reply = s.read()
	}
	return reply
}

func (s *Clocked) write(words []string) {
	out := make([]byte, 0, 512)
	out = append(out, '*')
	out = strconv.AppendInt(out, int64(len(words)), 10)
	for _, word := range words {
		out = append(out, "\r\n$"...)
		out = strconv.AppendInt(out, int64(len(word)), 10)
		out = append(out, "\r\n"...)
		out = append(out, word...)
	}
	out = append(out, "\r\n"...)
	if _, err := s.conn.Write(out); err != nil {
		panic(fmt.Errorf("testredis: writing to the server: %w", err))
	}
}

func (s *Clocked) read() any {
	line, err := s.replies.ReadString('\n')
	if err != nil || len(line) < 3 {
		panic(fmt.Errorf("testredis: reading from the server: %q, %w", line, err))
	}
	text := line[1 : len(line)-2]
	switch line[0] {
	case '+':
		return text
	case '-':
		return ReplyError(text)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		panic(fmt.Errorf("testredis: a reply from the server: %q, %w", line, err))
	case line[0] == ':':
		return n
	case n < 0:
		return nil
	case line[0] == '$':
		body := make([]byte, n+2)
		if _, err := io.ReadFull(s.replies, body); err != nil {
			panic(fmt.Errorf("testredis: reading from the server: %w", err))
		}
		return string(body[:n])
	}
	list := make([]any, n)
	for i := range list {
		list[i] = s.read()
	}
	return list
}

// Must is Do for a command that must succeed.
func (s *Clocked) Must(words ...string) any {
	reply := s.Do(words...)
	if err, is := reply.(ReplyError); is {
		panic(fmt.Errorf("testredis: %q: %w", words[0], err))
	}
	return reply
}

// Run executes a script.
func (s *Clocked) Run(script transport.Command, keys []string, args ...string) any {
	s.loaded[script.Digest] = script.Text
	words := append([]string{"EVALSHA", script.Digest, strconv.Itoa(len(keys))}, keys...)
	return s.Do(append(words, args...)...)
}

// HasCode reports whether a reply is an error that has this code in its text.
func HasCode(reply any, code string) bool {
	err, is := reply.(ReplyError)
	return is && strings.Contains(string(err), code)
}
