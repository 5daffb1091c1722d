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

// This file reads the records of clients: see clientrecord.go.

// recordID is the length of the part of a client's id that identifies its record. The id of a permit begins
// with the same eight bytes.
const (
	recordID    = 18
	recordBytes = 8
)

// recordOf returns the record that describes an owner or a permit, and the field of its note there. It
// returns "" for an owner or permit that this library did not make.
func recordOf(owner Owner) (record, field string) {
	switch id := owner.text; {
	case owner.client != "" && isOurs(owner.String()):
		return owner.client[:recordID], strconv.FormatUint(owner.number, 10)
	case owner.client == "" && isOurPermit(id):
		return id[:8] + "-" + id[8:12] + "-" + id[12:16], id
	}
	return "", ""
}

// description is the label of a client, and the note of one of its holds.
type description struct{ label, note string }

const (
	// describeBatch is how many records one script reads, and describeFlights how many scripts run at the
	// same time.
	describeBatch   = 64
	describeFlights = 16
)

// describe returns the labels and notes of owners and permits, as far as this client may read them. It never
// fails: it leaves out what it cannot read. All its queries together have recordPatience.
func (c *Client) describe(ctx context.Context, owners []Owner) map[Owner]description {
	if c.options.Label == NoLabel || len(owners) == 0 {
		return nil
	}
	found := map[Owner]description{}
	asked := map[string][]Owner{} // by record
	more := map[string][]Owner{}  // by record; for these only the label is read
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
	if c.cluster { // each record is in a slot of its own
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

// readRecords reads records that are on one node.
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

// textOf returns a text that another client wrote, made safe to show to people.
func textOf(m rueidis.RedisMessage, longest int) string {
	text, _ := m.ToString() // nil means no text
	return cleanText(text, longest)
}

// describeHolders adds labels and notes to holders.
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
			if !list[i].Kept { // the hold is over: its client's note may be older, or about another hold
				list[i].Note = each.note
			}
		}
	}
}

// knownLabels are the labels of other clients that this client has read. Errors name the holder by them
// without a query.
type knownLabels struct {
	client *Client

	mu        sync.Mutex
	labels    map[string]knownLabel // by record
	notBefore time.Time             // no query before that, after a refusal
}

// knownLabel is a label, or "" if there was none at that time.
type knownLabel struct {
	label string
	at    time.Time
}

// mostLabels is how many labels of other clients a client remembers.
const mostLabels = 1000

func newKnownLabels(c *Client) *knownLabels {
	return &knownLabels{client: c, labels: map[string]knownLabel{}}
}

// labelOf returns the label of an owner as it is in Redis, or "" if it is unknown.
func (k *knownLabels) labelOf(owner string) string {
	record, _ := recordOf(ownerOf(owner))
	if record == k.client.record.id {
		return k.client.Label()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.labels[record].label
}

// ask reads the label of an owner in the background, unless it is known, or was missing recently.
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
	k.learn(record, "") // keeps other calls from reading it at the same time
	k.client.sender.Background(func() {
		ctx, cancel := context.WithTimeout(context.Background(), recordPatience)
		defer cancel()
		k.client.describe(ctx, []Owner{ownerOf(owner)})
	})
}

// learn remembers a label. A label never changes, but a missing one may appear.
func (k *knownLabels) learn(record, label string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, known := k.labels[record]; !known && len(k.labels) >= mostLabels {
		clear(k.labels)
	}
	k.labels[record] = knownLabel{label, time.Now()}
}

// mayAsk reports whether the server has not refused recently.
func (k *knownLabels) mayAsk() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return time.Now().After(k.notBefore)
}

// failed notes that records could not be read. After a refusal the client does not retry at once.
func (k *knownLabels) failed(err error) {
	if err == nil || transport.Classify(err) != transport.Refused {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.notBefore = time.Now().Add(recordRefresh)
}
