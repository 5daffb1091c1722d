package outcome

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/redis/rueidis"
)

// The errors of commands that do not come from a server or from the network.
var (
	// ErrUnsent means that a command waited for a connection and was not sent.
	ErrUnsent = errors.New("latchkey: not sent: there is no connection")
	// ErrTooManyInFlight means that a command was not sent before the call's time was over, because
	// too many others wait for an answer.
	ErrTooManyInFlight = errors.New("latchkey: too many commands wait for an answer")
	// ErrElsewhere means that another node of the cluster has the key.
	ErrElsewhere = errors.New("latchkey: the slot is on another node")
	// ErrNoNodes means that a cluster has no nodes to which a command could be sent.
	ErrNoNodes = errors.New("latchkey: no node of the cluster serves any slot; " +
		"see redis-cli --cluster create and --cluster fix")
	// ErrClientClosed means that the rueidis client was found closed before the command was sent.
	// ErrClosing alone does not mean that: commands in flight get it too when a connection is
	// closed, by its owner or in a failover.
	ErrClientClosed = fmt.Errorf("latchkey: not sent: the rueidis client is closed: %w", rueidis.ErrClosing)
	// ErrSilent means that a command got no answer in the time allowed.
	ErrSilent = errors.New("latchkey: no answer from the server")
)

// refusalError is an error that does not come from a server but counts as a refusal.
type refusalError struct{ error }

func (e *refusalError) Unwrap() error { return e.error }

// Refusal returns err as an error that classifies as refused, because neither waiting nor another
// attempt can change it. It matches everything that err matches.
func Refusal(err error) error { return &refusalError{err} }

// executedError is an error after which nobody knows whether a script, which was executed, is
// confirmed.
type executedError struct{ error }

func (e *executedError) Unwrap() error { return e.error }

// Executed returns err as the reason why nobody knows whether replicas have confirmed a script,
// which was executed: above all UNBLOCKED, with which a master that becomes a replica ends each
// WAIT.
func Executed(err error) error { return &executedError{err} }

// unopenedError is why a connection was not opened.
type unopenedError struct{ err error }

func (e *unopenedError) Error() string { return e.err.Error() }

// Is matches ErrUnsent and the cause, except a timeout: rueidis would mistake that for the end of a
// caller's context.
func (e *unopenedError) Is(target error) bool {
	if target == os.ErrDeadlineExceeded || IsContextError(target) {
		return false
	}
	return target == ErrUnsent || errors.Is(e.err, target)
}

// As finds the error of the network.
func (e *unopenedError) As(target any) bool { return errors.As(e.err, target) }

// Unopened returns err as the reason why a connection was not opened: it failed before the server
// had sent anything. rueidis returns that error to all commands that wait for the connection, none
// of which was sent.
func Unopened(err error) error { return &unopenedError{err} }

// IsContextError reports whether an error is that of any context.
func IsContextError(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
