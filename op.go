package latchkey

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"
)

// opMemory is how long the server remembers an operation, as op.lua has it, and for
// how long one whose outcome is unknown is settled in the background at most.
const opMemory = 20 * time.Minute

// opMargin is how much earlier the background stops to settle.
const opMargin = time.Minute

// op is an operation on a counter: it changes a number, so that sent twice it would
// count twice. The server notes the last one of each lane. A lane of this client
// serves one operation at a time, with growing numbers, so that the notes are few.
type op struct {
	client *Client
	lane   int
	number string
	note   string // the key of the note
	turn   turn
	began  stamp
	settle call // what settles it if its outcome is unknown: itself, or its undo
}

// lanes are the numbers of the lanes of a client that are not in use.
type lanes struct {
	mu   sync.Mutex
	free []int
	made int
}

func (l *lanes) take() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.free); n > 0 {
		lane := l.free[n-1]
		l.free = l.free[:n-1]
		return lane
	}
	l.made++
	return l.made
}

func (l *lanes) give(lane int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free = append(l.free, lane)
}

// newOp begins an operation on the object of that key. over has to be called when its
// outcome is known.
func (c *Client) newOp(key string) *op {
	lane := c.lanes.take()
	return &op{
		client: c,
		lane:   lane,
		began:  c.clock(),
		number: strconv.FormatUint(c.tenures.number(), 10),
		note:   opKey(key, c.id, strconv.Itoa(lane)),
	}
}

// opKey is a key beside another that belongs to one client.
func opKey(key, client, what string) string {
	return "latchkey_op:" + hashTag(key) + ":" + client + ":" + what
}

func (o *op) over() { o.client.lanes.give(o.lane) }

// unknown leaves it to the background to settle the operation.
func (o *op) unknown() { o.client.janitor.once(o, opMemory) }

func (o *op) seat() *turn { return &o.turn }

// settleUp is part of [unsettled]. It ends while the server is certain to remember what
// it has done.
func (o *op) settleUp(ctx context.Context, stop <-chan struct{}) bool {
	if o.client.clock().since(o.began) > opMemory-opMargin-2*o.client.caller.patience {
		o.client.options.Logger.Error("latchkey: an operation whose outcome is unknown was given up", "note", o.note)
		o.over()
		return true
	}
	a, err := o.client.caller.call(ctx, stop, o.settle.cmd, o.settle.keys, o.settle.args)
	if err != nil && (judge(err) != refused || a.doubt) {
		return false
	}
	o.over()
	return true
}

// object is a named thing that is no lock: it has no owner and no lease.
type object struct {
	keys
	client  *Client
	invalid error // why the name cannot be used
}

func newObject(c *Client, name string, channel func(key string) string) object {
	names, err := c.options.keysOf(name)
	if err == nil {
		names.channel = channel(names.key)
	}
	return object{keys: names, client: c, invalid: err}
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
	a, err := o.client.caller.call(ctx, o.client.closing, c.cmd, c.keys, c.args)
	if err != nil {
		return a, fail(verb, o.name, explainObject(a, err)...)
	}
	return a, nil
}

// count sends an operation that counts once. If its outcome stays unknown, it is
// repeated in the background.
func (o *object) count(ctx context.Context, verb string, build func(*op) call) (answer, error) {
	return o.perform(ctx, verb, build, build)
}

// once sends an operation that takes effect once, and not late: if its outcome stays
// unknown, it is given up in the background.
func (o *object) once(ctx context.Context, verb string, build func(*op) call) (answer, error) {
	return o.perform(ctx, verb, build, func(each *op) call {
		return call{opVoid, []string{each.note}, []string{each.number}}
	})
}

// perform sends an operation, and leaves it to settle if its outcome is unknown.
func (o *object) perform(ctx context.Context, verb string, build, settle func(*op) call) (answer, error) {
	if o.invalid != nil {
		return answer{}, fail(verb, o.name, o.invalid)
	}
	if !o.client.begin() {
		return answer{}, fail(verb, o.name, ErrClosed)
	}
	defer o.client.working.Done()
	each := o.client.newOp(o.key)
	c := build(each)
	each.settle = settle(each)
	a, err := o.client.caller.call(ctx, nil, c.cmd, c.keys, c.args)
	switch {
	case err == nil:
		each.over()
		return a, nil
	case a.doubt:
		each.unknown()
	default:
		each.over()
	}
	return a, fail(verb, o.name, explainObject(a, err)...)
}

// explainObject puts the sentinel in front that an error stands for.
func explainObject(a answer, err error) []error {
	switch {
	case a.doubt:
		return []error{ErrUnknownOutcome, err}
	case hasCode(err, "LATCHKEY_UNSET"):
		return []error{ErrNotSet}
	case hasCode(err, "LATCHKEY_RANGE"):
		return []error{invalid("the sum is more than %d", maxCount)}
	case hasCode(err, "WRONGTYPE"):
		return []error{ErrWrongKind, err}
	}
	return []error{err}
}

// intOf reads an integer reply.
func intOf(a answer) (int, error) {
	n, err := a.message.AsInt64()
	if err != nil {
		return 0, errors.Join(errReply, err)
	}
	return int(n), nil
}
