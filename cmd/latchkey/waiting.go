package main

import (
	"context"
	"io"
	"time"
)

// unsaidWait is how long a wait may take before a terminal says what it is for.
const unsaidWait = 500 * time.Millisecond

// sayWhile calls wait. If out is a terminal and wait takes longer than a moment, it writes the
// text, so that the user knows for whom the command waits.
func sayWhile(ctx context.Context, out io.Writer, text func(context.Context) string, wait func()) {
	if !isTerminal(out) {
		wait()
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	said := make(chan struct{})
	go func() {
		defer close(said)
		select {
		case <-time.After(unsaidWait):
			if line := text(ctx); ctx.Err() == nil {
				say(out, "%s", line)
			}
		case <-ctx.Done():
		}
	}()
	wait()
	cancel()
	<-said // after the wait, the terminal belongs to the command
}
