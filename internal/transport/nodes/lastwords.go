package nodes

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"
	"syscall"
)

// lastWords remembers what passed over a connection last, for the error when the server closes it:
// a server may refuse a client or a command by an error reply and the end of the connection.
// rueidis reports only the end.
type lastWords struct {
	mu    sync.Mutex
	sent  [64]byte // how the last write begins
	size  int
	reads int    // used by the reader only, as is said
	said  string // the error reply that was the last thing received, or ""
}

// write notes what is about to be sent.
func (w *lastWords) write(b []byte) {
	w.mu.Lock()
	w.size = copy(w.sent[:], b)
	w.mu.Unlock()
}

// read notes what was received.
func (w *lastWords) read(b []byte) {
	w.reads++
	w.said = ""
	if b[0] != '-' {
		return
	}
	if line, whole := bytes.CutSuffix(b, []byte("\r\n")); whole && !bytes.Contains(line, []byte("\r\n")) {
		said, _, _ := strings.Cut(string(line[1:]), ", with args beginning with") // one may be a password
		w.said = said
	}
}

// command returns the name of the first command in the last write, or "". The rest may be secret.
func (w *lastWords) command() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	parts := strings.SplitN(string(w.sent[:w.size]), "\r\n", 4) // *3, $4, HELLO
	if len(parts) < 4 || !strings.HasPrefix(parts[0], "*") {
		return ""
	}
	return parts[2]
}

// explain returns the error with which a read has ended, with what passed before if the server has
// closed the connection.
func (w *lastWords) explain(err error) error {
	if !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
		return err
	}
	return &closedError{err, w.command(), w.said}
}

// refused reports whether nothing but an error reply to the greeting was received: then the server
// has refused the connection, and rueidis has sent no command of a caller.
func (w *lastWords) refused() bool {
	command := w.command()
	return w.reads == 1 && w.said != "" && (command == "" || command == "HELLO" || command == "AUTH")
}

// closedError is the end of a connection that the server has closed.
type closedError struct {
	cause         error
	command, said string
}

func (e *closedError) Error() string {
	text := "the server closed the connection"
	if e.command != "" {
		text += " after " + e.command
	}
	if e.said != "" {
		text += ", with the reply " + e.said
	}
	return text + ": " + e.cause.Error()
}

func (e *closedError) Unwrap() error { return e.cause }
