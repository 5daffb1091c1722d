package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// signals receives the signals to this program. Most of them are meant for its command.
type signals struct {
	inbox chan os.Signal
}

// catchSignals does not catch signals that the caller of this program made ignored:
// a hang-up must not end a command that was started with nohup.
func catchSignals() *signals {
	s := &signals{inbox: make(chan os.Signal, 16)}
	for _, sig := range passedOn {
		if !signal.Ignored(sig) {
			signal.Notify(s.inbox, sig)
		}
	}
	return s
}

func (s *signals) release() { signal.Stop(s.inbox) }

// interrupting returns a context that ends with the first signal, and a function
// that ends the context and returns the signal, or nil if none came.
func (s *signals) interrupting(parent context.Context) (context.Context, func() os.Signal) {
	ctx, cancel := context.WithCancel(parent)
	caught := make(chan os.Signal, 1)
	go func() {
		defer close(caught)
		select {
		case sig := <-s.inbox:
			caught <- sig
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, func() os.Signal {
		cancel()
		return <-caught
	}
}

// interruptibly calls do with a context that a signal ends. After a signal the exit
// code is the one that shells use.
func interruptibly(ctx context.Context, do func(context.Context) error) error {
	signals := catchSignals()
	defer signals.release()
	ctx, arrived := signals.interrupting(ctx)
	err := do(ctx)
	if sig := arrived(); sig != nil {
		return silently(exitSignalled + signalNumber(sig))
	}
	return err
}

func signalNumber(sig os.Signal) int {
	number, _ := sig.(syscall.Signal)
	return int(number)
}
