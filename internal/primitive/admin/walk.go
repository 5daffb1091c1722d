package admin

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/inspect"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport/nodes"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
	"github.com/latchkey-go/latchkey/internal/transport/retry"
)

const (
	// walkPiece is how many keys SCAN looks at for one piece.
	walkPiece = "512"
	// walkTrust is how long a walk relies on what it has read about a client without notes.
	walkTrust = 5 * time.Second
	// walkRounds is how often a walk may start again at least while servers keep being replaced. It
	// may do so for as long as the RetryBudget.
	walkRounds = 16
)

// WalkObjects yields the objects whose names match a pattern. An error ends the walk, and comes
// with no object.
func WalkObjects(ctx context.Context, c *core.Parts, pattern string) iter.Seq2[inspect.Object, error] {
	return func(yield func(inspect.Object, error) bool) {
		if pattern == "" || len(pattern) > keyspace.MaxLength {
			yield(inspect.Object{}, fault.Op("objects", pattern,
				fault.Invalid("the pattern has %d bytes, not 1 to %d", len(pattern), keyspace.MaxLength)))
			return
		}
		w := walk{client: c, pattern: pattern, yield: yield}
		if c.Config.NameMapper == nil {
			w.pattern = QuotePattern(c.Config.KeyPrefix) + pattern
		}
		if err := w.all(ctx); err != nil && !w.stopped {
			yield(inspect.Object{}, fault.Op("objects", pattern, err))
		}
	}
}

var patternQuoter = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)

// QuotePattern returns the pattern that matches text and nothing else.
func QuotePattern(text string) string { return patternQuoter.Replace(text) }

// walk visits all keys of all masters.
type walk struct {
	client  *core.Parts
	pattern string // for keys
	yield   func(inspect.Object, error) bool
	stopped bool // the caller wants no more
}

// errReplaced means that servers may have been replaced by others, which do not know the cursor.
var errReplaced = fault.Sub("latchkey: connections to the server break again and again", fault.ErrUnavailable)

// rounds are the rounds of a walk that has to start again.
type rounds struct {
	*walk
	n     int
	began time.Time
}

func (w *walk) rounds() *rounds { return &rounds{walk: w, began: time.Now()} }

// next reports whether another round may begin. The second begins at once, and each further one
// after a pause.
func (r *rounds) next(ctx context.Context) bool {
	if r.n++; r.n > walkRounds && time.Since(r.began) > r.client.Config.RetryBudget {
		return false
	}
	if r.n > 2 { // an error of the pause is that of the next request
		_ = retry.Rest(ctx, r.client.Closing, retry.Jitter(retry.LongPause))
	}
	return true
}

// all visits all masters, until it has visited every current one while that served the same slots.
func (w *walk) all(ctx context.Context) error {
	failed := map[string]error{} // the outcome for each master that was visited
	for r := w.rounds(); r.next(ctx); {
		masters, err := w.masters(ctx)
		if err != nil {
			return err
		}
		more := false
		for _, m := range masters {
			if err, visited := failed[m.ID]; visited && err == nil {
				continue
			} else if err != nil {
				return err // this master still serves, so it was not replaced
			}
			if err = w.master(ctx, m); w.stopped || err != nil && !w.mayBeReplaced(err) {
				return err
			}
			failed[m.ID], more = err, true
		}
		if !more {
			return nil
		}
	}
	return errReplaced
}

// mayBeReplaced reports whether another server may have replaced one that did not answer.
func (w *walk) mayBeReplaced(err error) bool {
	return w.client.Cluster && !outcome.Classify(err).Final() && !errors.Is(err, fault.ErrClosed)
}

// masters returns the current masters.
func (w *walk) masters(ctx context.Context) ([]nodes.Master, error) {
	if err := w.client.Begin(ctx); err != nil {
		return nil, err
	}
	defer w.client.Done()
	return w.client.Sender.Masters(ctx, w.client.Closing)
}

// master visits one master. It starts again if its cursor may have become worthless.
func (w *walk) master(ctx context.Context, m nodes.Master) error {
	for r := w.rounds(); r.next(ctx); {
		began, cursor := m.Continuity(), "0"
		for {
			var found []inspect.Object
			var err error
			if found, cursor, err = w.piece(ctx, m, cursor); err != nil {
				return err
			}
			for _, o := range found {
				if w.stopped = !w.yield(o, nil); w.stopped {
					return nil
				}
			}
			if cursor == "0" || m.Continuity() != began {
				break
			}
		}
		if m.Continuity() == began {
			return nil
		}
	}
	return errReplaced
}

// piece reads one piece of the keys of a master, and looks at them. It returns the next cursor, "0"
// at the end.
func (w *walk) piece(ctx context.Context, m nodes.Master, cursor string) ([]inspect.Object, string, error) {
	c := w.client
	if err := c.Begin(ctx); err != nil {
		return nil, "", err
	}
	defer c.Done()
	scan := func(ctx context.Context, client rueidis.Client) rueidis.RedisResult {
		// An arbitrary command, because a client may send a read-only one to a replica.
		return client.Do(ctx, client.B().Arbitrary("SCAN", cursor, "MATCH", w.pattern, "COUNT", walkPiece).Build())
	}
	reply, err := c.Sender.QueryMaster(ctx, c.Closing, m, scan)
	if err != nil {
		return nil, "", err
	}
	parts, err := reply.ToArray()
	if err != nil || len(parts) != 2 {
		return nil, "", errors.Join(script.ErrReply, err)
	}
	next, err1 := parts[0].ToString()
	found, err2 := parts[1].AsStrSlice()
	if _, err = strconv.ParseUint(next, 10, 64); err != nil || err1 != nil || err2 != nil {
		return nil, "", errors.Join(script.ErrReply, err, err1, err2)
	}
	objects, err := look(ctx, c, m, w.namesOf(found))
	holders := make([][]inspect.Holder, len(objects))
	for i, o := range objects {
		holders[i] = o.Holders
	}
	c.Inspector.Describe(ctx, walkTrust, holders...)
	return objects, next, err
}

// namesOf returns the names for keys, without keys that no object can have.
func (w *walk) namesOf(found []string) []*keyspace.Keys {
	options := &w.client.Config
	slices.Sort(found)
	var all []*keyspace.Keys
	for _, key := range slices.Compact(found) {
		name, own := strings.CutPrefix(key, options.KeyPrefix)
		if options.NameMapper != nil {
			name = ""
		}
		if keyspace.CheckName(key) == nil && (options.NameMapper != nil || own && name != "") {
			all = append(all, keyspace.OfKey(name, key))
		}
	}
	return all
}
