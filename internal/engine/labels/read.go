package labels

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// owners are owners by the records of their clients.
type owners map[string][]identity.Owner

// descriptions are what is known of owners.
type descriptions map[identity.Owner]Description

// Description is the label of a client, and the note of one of its holds.
type Description struct{ Label, Note string }

// recordsAtOnce is how many records one script reads.
const recordsAtOnce = 64

// describe returns the labels and notes of owners and permits, as far as this client may read them.
// It never fails: it leaves out what it cannot read. All its queries together take no longer than
// patience. It does not read the record of a client again that had no notes less than trust ago.
func (k *Known) describe(ctx context.Context, all []identity.Owner, trust time.Duration) descriptions {
	if k.config.Label == "" || len(all) == 0 {
		return nil
	}
	found := descriptions{}
	byRecord := owners{}
	more := owners{} // for these only the label is read
	for _, owner := range all {
		record, _ := owner.Record()
		if record == "" {
			continue
		}
		if record == k.own.id {
			found[owner] = Description{k.config.Label, k.own.NoteOf(owner)}
		} else if label := k.withoutNotes(record, trust); label != "" {
			found[owner] = Description{Label: label}
		} else if len(byRecord[record]) < mostNotes {
			byRecord[record] = append(byRecord[record], owner)
		} else {
			more[record] = append(more[record], owner)
		}
	}
	if len(byRecord) == 0 || !k.mayFetch() || k.config.Begin(ctx) != nil {
		return found
	}
	defer k.config.Done()
	k.readRecords(ctx, byRecord, found)
	for record, unread := range more {
		for _, owner := range unread {
			found[owner] = Description{Label: found[byRecord[record][0]].Label}
		}
	}
	return found
}

// readRecords reads records, in one round trip to each node, and adds what they say of owners to
// found.
func (k *Known) readRecords(ctx context.Context, byRecord owners, found descriptions) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	size := recordsAtOnce
	if k.config.Cluster { // each record is in a slot of its own
		size = 1
	}
	batches := slices.Collect(slices.Chunk(slices.Sorted(maps.Keys(byRecord)), size))
	loads := make([]transport.Load, len(batches))
	for i, records := range batches {
		for _, record := range records {
			loads[i].Keys = append(loads[i].Keys, keyspace.RecordKey(record))
			loads[i].Args = append(loads[i].Args, strconv.Itoa(len(byRecord[record])))
			for _, owner := range byRecord[record] {
				_, field := owner.Record()
				loads[i].Args = append(loads[i].Args, field)
			}
		}
	}
	for i, result := range k.config.Sender.SendEachOnce(ctx, script.LabelRead, loads) {
		k.takeRecords(result, batches[i], byRecord, found)
	}
}

// takeRecords reads the reply of one script.
func (k *Known) takeRecords(result rueidis.RedisResult, records []string, byRecord owners, found descriptions) {
	replies, err := result.ToArray()
	if err != nil || len(replies) != len(records) {
		k.failed(err)
		return
	}
	for i, record := range records {
		texts, err := replies[i].ToArray()
		if err != nil || len(texts) != 2+len(byRecord[record]) {
			continue
		}
		fields, _ := texts[0].AsInt64()
		label := textOf(texts[1], identity.MaxLabel)
		k.learn(record, label, fields > 1)
		for j, owner := range byRecord[record] {
			found[owner] = Description{label, textOf(texts[2+j], identity.MaxNote)}
		}
	}
}

// textOf returns a text that another client wrote, made safe to show to people.
func textOf(m rueidis.RedisMessage, longest int) string {
	text, _ := m.ToString() // nil means no text
	return identity.CleanText(text, longest)
}

// DescribeEach reads the labels and notes of the owners of all elements of lists, and passes each
// description to set. What this client cannot read within a second is missing. The label of a
// client that had no notes less than trust ago is not read again.
func DescribeEach[T any](ctx context.Context, k *Known, trust time.Duration, lists [][]T,
	owner func(T) identity.Owner, set func(*T, Description)) {
	var all []identity.Owner
	for _, list := range lists {
		for _, each := range list {
			all = append(all, owner(each))
		}
	}
	found := k.describe(ctx, all, trust)
	for _, list := range lists {
		for i := range list {
			set(&list[i], found[owner(list[i])])
		}
	}
}
