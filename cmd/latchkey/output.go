package main

import (
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// mostOutput is how much of the output of a command is kept.
const mostOutput = 64 << 10

// output copies what a command writes, and keeps the first part of it.
type output struct {
	file   *os.File // for the command
	copied chan struct{}

	mu   sync.Mutex
	kept []byte
}

// captureOutput copies to another file. If that cannot be written, or its reader is gone, the
// command goes on, and its output is only kept.
func captureOutput(to io.Writer) (*output, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // else a write to a pipe that nobody reads ends this program
	o := &output{file: write, copied: make(chan struct{}), kept: []byte{}}
	go func() {
		defer close(o.copied)
		_, _ = io.Copy(io.MultiWriter(o, to), read)
		_, _ = io.Copy(o, read)
	}()
	return o, nil
}

// Write keeps what there is room for.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.kept = append(o.kept, p[:min(len(p), mostOutput-len(o.kept))]...)
	return len(p), nil
}

// end returns what was kept, when the command has ended. Children that live on may have the file:
// it waits for them for at most patience.
func (o *output) end(patience time.Duration) []byte {
	_ = o.file.Close()
	select {
	case <-o.copied:
	case <-time.After(patience):
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.kept
}
