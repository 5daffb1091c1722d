package rig

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// value is one RESP2 or RESP3 value together with its bytes.
type value struct {
	kind  byte // the type byte: + - : $ * > and the others of RESP3
	text  string
	elems []value
	raw   []byte
}

// readValue reads one complete value.
func readValue(r *bufio.Reader) (value, error) {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return value{}, err
	}
	if len(line) < 3 || line[len(line)-2] != '\r' {
		return value{}, fmt.Errorf("no RESP line: %q", line)
	}
	v := value{kind: line[0], text: string(line[1 : len(line)-2]), raw: line}
	switch v.kind {
	case '+', '-', ':', '_', ',', '#', '(':
		return v, nil
	case '$', '!', '=':
		return readBulk(r, v)
	case '*', '~', '>', '%', '|':
		return readElems(r, v)
	default:
		return value{}, fmt.Errorf("no RESP type: %q", line)
	}
}

// readBulk reads the bytes of a string whose length was announced.
func readBulk(r *bufio.Reader, v value) (value, error) {
	n, err := strconv.Atoi(v.text)
	if err != nil || n < 0 { // $-1 is RESP2's nil
		return v, err
	}
	body := make([]byte, n+2)
	if _, err := io.ReadFull(r, body); err != nil {
		return v, err
	}
	v.text = string(body[:n])
	v.raw = append(v.raw, body...)
	return v, nil
}

// readElems reads the members of an aggregate; a map has two per count.
func readElems(r *bufio.Reader, v value) (value, error) {
	n, err := strconv.Atoi(v.text)
	if err != nil {
		return v, err
	}
	if v.kind == '%' || v.kind == '|' {
		n *= 2
	}
	for range n { // *-1 is RESP2's nil array
		elem, err := readValue(r)
		if err != nil {
			return v, err
		}
		v.elems = append(v.elems, elem)
		v.raw = append(v.raw, elem.raw...)
	}
	return v, nil
}

// words returns the members of an aggregate as strings: a command's words, or the
// kind and channel of a message.
func (v value) words() []string {
	words := make([]string, len(v.elems))
	for i, elem := range v.elems {
		words[i] = elem.text
	}
	return words
}

// notice returns the first word of a value that is not a reply: message, subscribe and related
// words. RESP2 sends these as arrays on a connection that has subscribed, RESP3 as pushes. For a
// reply it returns "".
func (v value) notice(subscriber bool) string {
	if len(v.elems) == 0 || (v.kind != '>' && !(v.kind == '*' && subscriber)) {
		return ""
	}
	word := strings.ToLower(v.elems[0].text)
	if v.kind == '>' || isMessage(word) || isSubscription(word) {
		return word
	}
	return ""
}

func isMessage(word string) bool {
	return word == "message" || word == "smessage" || word == "pmessage"
}

func isSubscription(word string) bool {
	switch word {
	case "subscribe", "ssubscribe", "psubscribe", "unsubscribe", "sunsubscribe", "punsubscribe":
		return true
	}
	return false
}
