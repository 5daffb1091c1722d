package latchkey

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

// description is the label of a client, and the note of one of its holds.
type description struct{ label, note string }

// describeBatch is how many records one script reads.
const describeBatch = 64

// describe returns the labels and notes of owners and permits, as far as this client may read them. It never
// fails: it leaves out what it cannot read. All its queries together have recordPatience. It does not read the
// record of a client again that had no notes less than trust ago.
func (k *knownLabels) describe(ctx context.Context, owners []identity.Owner, trust time.Duration) map[identity.Owner]description {
	if k.config.label == "" || len(owners) == 0 {
		return nil
	}
	found := map[identity.Owner]description{}
	byRecord := map[string][]identity.Owner{}
	more := map[string][]identity.Owner{} // for these only the label is read
	for _, owner := range owners {
		record, field := owner.Record()
		if record == "" {
			continue
		}
		if record == k.own.id {
			found[owner] = description{k.config.label, k.own.noteOf(field)}
		} else if label := k.withoutNotes(record, trust); label != "" {
			found[owner] = description{label: label}
		} else if len(byRecord[record]) < recordFields {
			byRecord[record] = append(byRecord[record], owner)
		} else {
			more[record] = append(more[record], owner)
		}
	}
	if len(byRecord) == 0 || !k.mayFetch() || k.config.begin(ctx) != nil {
		return found
	}
	defer k.config.done()
	k.readRecords(ctx, byRecord, found)
	for record, owners := range more {
		for _, owner := range owners {
			found[owner] = description{label: found[byRecord[record][0]].label}
		}
	}
	return found
}

// readRecords reads records, in one round trip to each node, and adds what they say of owners to found.
func (k *knownLabels) readRecords(ctx context.Context, byRecord map[string][]identity.Owner, found map[identity.Owner]description) {
	ctx, cancel := context.WithTimeout(ctx, recordPatience)
	defer cancel()
	size := describeBatch
	if k.config.cluster { // each record is in a slot of its own
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
	for i, result := range k.config.sender.SendEachOnce(ctx, script.LabelRead, loads) {
		k.takeRecords(result, batches[i], byRecord, found)
	}
}

// takeRecords reads the reply of one script.
func (k *knownLabels) takeRecords(result rueidis.RedisResult, records []string, byRecord map[string][]identity.Owner, found map[identity.Owner]description) {
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
			found[owner] = description{label, textOf(texts[2+j], identity.MaxNote)}
		}
	}
}

// textOf returns a text that another client wrote, made safe to show to people.
func textOf(m rueidis.RedisMessage, longest int) string {
	text, _ := m.ToString() // nil means no text
	return identity.CleanText(text, longest)
}

// describeEach describes the owners of all elements of lists, as describe does, and passes each description to set.
func describeEach[T any](ctx context.Context, k *knownLabels, trust time.Duration, lists [][]T, owner func(T) identity.Owner, set func(*T, description)) {
	var owners []identity.Owner
	for _, list := range lists {
		for _, each := range list {
			owners = append(owners, owner(each))
		}
	}
	found := k.describe(ctx, owners, trust)
	for _, list := range lists {
		for i := range list {
			set(&list[i], found[owner(list[i])])
		}
	}
}
