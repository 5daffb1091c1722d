package latchkey

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// What clients say of themselves, for people: see clientrecord.go.

// recordID is how long the part of a client's id is by which its record is known. A permit's id begins with
// the same eight bytes.
const (
	recordID    = 18
	recordBytes = 8
)

// recordOf is the record that tells of an owner or of a permit, and the field of its note there; "" for one
// that this library has not made.
func recordOf(owner Owner) (record, field string) {
	switch id := owner.text; {
	case owner.client != "" && isOurs(owner.String()):
		return owner.client[:recordID], strconv.FormatUint(owner.number, 10)
	case owner.client == "" && isOurPermit(id):
		return id[:8] + "-" + id[8:12] + "-" + id[12:16], id
	}
	return "", ""
}

// description is what a client says of itself, and of one of its holds.
type description struct{ label, note string }

const (
	// describeBatch is how many records one script reads, and describeFlights how many scripts are under way.
	describeBatch   = 64
	describeFlights = 16
)

// describe asks what is said of owners and of permits, as far as this client may know. It never fails: what
// cannot be read is missing, and the server has a second for all of it.
func (c *Client) describe(ctx context.Context, owners []Owner) map[Owner]description {
	if c.options.Label == NoLabel || len(owners) == 0 {
		return nil
	}
	found := map[Owner]description{}
	asked := map[string][]Owner{} // by their records
	more := map[string][]Owner{}  // without their notes
	for _, owner := range owners {
		switch record, field := recordOf(owner); {
		case record == c.record.id:
			found[owner] = description{c.options.Label, c.record.noteOf(field)}
		case record != "" && len(asked[record]) < recordFields:
			asked[record] = append(asked[record], owner)
		case record != "":
			more[record] = append(more[record], owner)
		}
	}
	if len(asked) == 0 || !c.labels.mayAsk() || !c.begin() {
		return found
	}
	defer c.working.Done()
	ctx, cancel := context.WithTimeout(ctx, recordPatience)
	defer cancel()
	var mu sync.Mutex
	size := describeBatch
	if c.cluster { // each record has a slot of its own
		size = 1
	}
	inParallel(describeFlights, slices.Collect(slices.Chunk(slices.Sorted(maps.Keys(asked)), size)), func(records []string) {
		texts := c.readRecords(ctx, records, asked)
		mu.Lock()
		defer mu.Unlock()
		maps.Copy(found, texts)
	})
	for record, owners := range more {
		for _, owner := range owners {
			found[owner] = description{label: found[asked[record][0]].label}
		}
	}
	return found
}

// readRecords reads records that one node has.
func (c *Client) readRecords(ctx context.Context, records []string, asked map[string][]Owner) map[Owner]description {
	var keys, args []string
	for _, record := range records {
		keys = append(keys, recordKey(record))
		args = append(args, strconv.Itoa(len(asked[record])))
		for _, owner := range asked[record] {
			_, field := recordOf(owner)
			args = append(args, field)
		}
	}
	replies, err := c.sender.SendOnce(ctx, labelRead, keys, args).ToArray()
	if err != nil || len(replies) != len(records) {
		c.labels.failed(err)
		return nil
	}
	found := map[Owner]description{}
	for i, record := range records {
		texts, err := replies[i].ToArray()
		if err != nil || len(texts) != 1+len(asked[record]) {
			continue
		}
		label := textOf(texts[0], MaxLabelLength)
		c.labels.learn(record, label)
		for j, owner := range asked[record] {
			found[owner] = description{label, textOf(texts[1+j], MaxNoteLength)}
		}
	}
	return found
}

// textOf is a text that somebody has written, as people may be shown it.
func textOf(m rueidis.RedisMessage, longest int) string {
	text, _ := m.ToString() // nil is none
	return cleanText(text, longest)
}

// describeHolders puts labels and notes to holders.
func (c *Client) describeHolders(ctx context.Context, lists ...[]Holder) {
	var owners []Owner
	for _, list := range lists {
		for _, h := range list {
			owners = append(owners, h.Owner)
		}
	}
	said := c.describe(ctx, owners)
	for _, list := range lists {
		for i := range list {
			each := said[list[i].Owner]
			list[i].Label = each.label
			if !list[i].Kept { // its hold is over, and what its client says may be older, or be of another one
				list[i].Note = each.note
			}
		}
	}
}

// knownLabels are the labels of other clients that this one has read. They name the holder in errors, for
// which nobody is asked.
type knownLabels struct {
	client *Client

	mu        sync.Mutex
	labels    map[string]knownLabel // by record
	notBefore time.Time             // the server is asked again, after a refusal
}

// knownLabel is a label, "" if there was none at that time.
type knownLabel struct {
	label string
	at    time.Time
}

// mostLabels is how many labels of others a client remembers.
const mostLabels = 1000

func newKnownLabels(c *Client) *knownLabels {
	return &knownLabels{client: c, labels: map[string]knownLabel{}}
}

// labelOf is the label of an owner, as it stands in Redis, or "" if that is not known.
func (k *knownLabels) labelOf(owner string) string {
	record, _ := recordOf(ownerOf(owner))
	if record == k.client.record.id {
		return k.client.Label()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.labels[record].label
}

// ask has the label of an owner read in the background, unless it is known, or was missing a moment ago.
func (k *knownLabels) ask(owner string) {
	record, _ := recordOf(ownerOf(owner))
	if record == "" || k.client.options.Label == NoLabel || !k.mayAsk() {
		return
	}
	k.mu.Lock()
	known, was := k.labels[record]
	again := !was || known.label == "" && time.Since(known.at) > recordRefresh
	k.mu.Unlock()
	if !again || record == k.client.record.id {
		return
	}
	k.learn(record, "") // for those who ask meanwhile
	k.client.sender.Background(func() {
		ctx, cancel := context.WithTimeout(context.Background(), recordPatience)
		defer cancel()
		k.client.describe(ctx, []Owner{ownerOf(owner)})
	})
}

// learn remembers a label. It never changes; one that is missing may come.
func (k *knownLabels) learn(record, label string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, known := k.labels[record]; !known && len(k.labels) >= mostLabels {
		clear(k.labels)
	}
	k.labels[record] = knownLabel{label, time.Now()}
}

// mayAsk reports whether the server has not refused lately.
func (k *knownLabels) mayAsk() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return time.Now().After(k.notBefore)
}

// failed notes that records could not be read. A refusal is not asked for again at once.
func (k *knownLabels) failed(err error) {
	if err == nil || transport.Classify(err) != transport.Refused {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.notBefore = time.Now().Add(recordRefresh)
}
