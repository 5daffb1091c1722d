package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// signals are those sent to this program, most of them meant for its command.
type signals struct {
	inbox chan os.Signal
}

// catchSignals leaves out what the caller has switched off: a command started
// with nohup is not to be ended by a hang-up.
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
// that ends this state of affairs and returns the signal, or nil if none came.
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

// interruptibly does something that ends, with the code that shells give it, when
// a signal arrives.
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
