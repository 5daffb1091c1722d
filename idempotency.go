package latchkey

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"
)

// opMemory is how long the server remembers an operation, as op.lua has it: for as long
// as a copy may be delivered late.
const opMemory = lateDelivery

// opMargin is how much earlier the background gives up an operation: it must not send one
// that the server may have forgotten.
const opMargin = time.Minute

// operation is an operation on a counter: it changes a number, so that sent twice it would
// count twice. The server notes the last one of each lane. A lane of this client and an
// object serves one operation at a time, with growing numbers.
type operation struct {
	client   *Client
	key      string // of the object
	lane     int
	number   string
	record   string // the key of the note
	began    stamp
	followUp call // what settles it if its outcome is unknown: itself, or its undo
}

// dedupLanes are those in use, by the key of the object. An operation takes the first that is
// free, so that the server has one note for each object and each operation that was under
// way on it at the same time.
type dedupLanes struct {
	mu   sync.Mutex
	busy map[string][]bool
}

func (l *dedupLanes) reserve(key string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy == nil {
		l.busy = map[string][]bool{}
	}
	busy := l.busy[key]
	lane := slices.Index(busy, false)
	if lane < 0 {
		lane = len(busy)
		busy = append(busy, false)
	}
	busy[lane] = true
	l.busy[key] = busy
	return lane + 1
}

func (l *dedupLanes) free(key string, lane int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	busy := l.busy[key]
	busy[lane-1] = false
	if !slices.Contains(busy, true) {
		delete(l.busy, key)
	}
}

// newOperation begins an operation on the object of that key. over has to be called when its
// outcome is known.
func (c *Client) newOperation(key string) *operation {
	lane := c.dedupLanes.reserve(key)
	return &operation{
		client: c,
		key:    key,
		lane:   lane,
		began:  c.clock(),
		number: strconv.FormatUint(c.registry.number(), 10),
		record: opKey(key, c.id, strconv.Itoa(lane)),
	}
}

func (o *operation) done() { o.client.dedupLanes.free(o.key, o.lane) }

// repeatLater leaves it to the background to settle the operation.
func (o *operation) repeatLater() { o.client.undo.add(o, undoPlan{key: o.record, lease: opMemory}) }

// undo is part of [undoable]. It ends while the server is certain to remember what it has
// done.
func (o *operation) undo(ctx context.Context, stop <-chan struct{}) outcome {
	if o.client.clock().since(o.began) > opMemory-opMargin-2*o.client.sender.patience {
		o.client.reporter.log(noticeGivenUp, o.record)
		o.done()
		return refused
	}
	a, err := o.client.sender.call(ctx, stop, o.followUp.cmd, o.followUp.keys, o.followUp.args)
	switch v := classify(err); {
	case v == refused && a.doubt:
		return tryLater // an earlier attempt may have been executed
	case !v.final():
		return v
	}
	o.done()
	return answered
}

// object is a named thing that is no lock: it has no owner and no lease.
type object struct {
	keys
	client  *Client
	kind    Kind
	invalid error // why the name cannot be used
}

func newObject(c *Client, kind Kind, name string, channel func(key string) string) object {
	names, err := c.options.keysOf(name)
	if err == nil {
		names.channel = channel(names.key)
	}
	return object{keys: names, client: c, kind: kind, invalid: err}
}

// Name returns the name as the program gave it.
func (o *object) Name() string { return o.name }

// query asks something that changes nothing, or that may be done twice.
func (o *object) query(ctx context.Context, verb string, c call) (answer, error) {
	if o.invalid != nil {
		return answer{}, fail(verb, o.name, o.invalid)
	}
	if !o.client.begin() {
		return answer{}, fail(verb, o.name, ErrClosed)
	}
	defer o.client.working.Done()
	a, err := o.client.sender.call(ctx, o.client.closing, c.cmd, c.keys, c.args)
	if err != nil {
		return a, fail(verb, o.name, o.explain(ctx, a, err)...)
	}
	return a, nil
}

// count sends an operation that counts once. If its outcome stays unknown, it is
// repeated in the background.
func (o *object) count(ctx context.Context, verb string, build func(*operation) call) (answer, error) {
	return o.perform(ctx, verb, build, build)
}

// once sends an operation that takes effect once, and not late: if its outcome stays
// unknown, it is given up in the background.
func (o *object) once(ctx context.Context, verb string, build func(*operation) call) (answer, error) {
	return o.perform(ctx, verb, build, func(each *operation) call {
		return call{opVoid, []string{each.record}, []string{each.number}}
	})
}

// perform sends an operation, and leaves it to settle if its outcome is unknown.
func (o *object) perform(ctx context.Context, verb string, build, settle func(*operation) call) (answer, error) {
	if o.invalid != nil {
		return answer{}, fail(verb, o.name, o.invalid)
	}
	if !o.client.begin() {
		return answer{}, fail(verb, o.name, ErrClosed)
	}
	defer o.client.working.Done()
	each := o.client.newOperation(o.key)
	c := build(each)
	each.followUp = settle(each)
	a, err := o.client.sender.call(ctx, nil, c.cmd, c.keys, c.args)
	switch {
	case err == nil:
		each.done()
		return a, nil
	case a.doubt:
		each.repeatLater()
	default:
		each.done()
	}
	return a, fail(verb, o.name, o.explain(ctx, a, err)...)
}

// explain puts the sentinel in front that an error stands for.
func (o *object) explain(ctx context.Context, a answer, err error) []error {
	switch {
	case a.doubt:
		return []error{ErrUnknownOutcome, err}
	case hasCode(err, "LATCHKEY_UNSET"):
		return []error{ErrNotSet}
	case hasCode(err, "LATCHKEY_RANGE"):
		return []error{invalid("the sum is more than %d", maxCount)}
	case hasCode(err, "WRONGTYPE"):
		return []error{o.client.wrongKind(ctx, o.keys, o.kind, err)}
	}
	return []error{err}
}
