package identity

import (
	"encoding/binary"
	"encoding/hex"
	"regexp"
	"strconv"
	"strings"

	"github.com/latchkey-go/latchkey/internal/base/fault"
)

// IsOurPermit reports whether the id of a permit was made by this library: it begins with half of
// the client's id.
func IsOurPermit(id string) bool { return permitShape.MatchString(id) }

var permitShape = regexp.MustCompile(`^[0-9a-f]{12}8[0-9a-f]{19}$`)

// clientBytes is how many bytes of its client's id the id of a permit begins with, and the name of
// the client's record has. clientLength is their length in the text of the client's id.
const (
	clientBytes  = 8
	clientLength = 18
)

// Record returns the record that describes an owner or a permit, and the field of its note there.
// It returns "" for an owner or permit that this library did not make.
func (o Owner) Record() (record, field string) {
	switch id := o.text; {
	case o.client != "" && IsOurs(o.String()):
		return RecordOfClient(o.client), strconv.FormatUint(o.number, 10)
	case o.client == "" && IsOurPermit(id):
		return id[:8] + "-" + id[8:12] + "-" + id[12:16], id
	}
	return "", ""
}

// RecordOfClient returns the part of a client's id that identifies its record.
func RecordOfClient(id string) string { return id[:clientLength] }

// permitPrefix returns the beginning of the ids of a client's permits, in hexadecimal digits.
func permitPrefix(client string) string { return strings.ReplaceAll(RecordOfClient(client), "-", "") }

// Offsets in the bytes of an id: how many permits were requested together, and which of them this
// one is.
const (
	groupSize  = 12
	groupIndex = 14
)

// NewPermitIDs makes ids for permits that are requested together. They begin with half of the id of
// the client, so that others can find out which client has the permits.
func NewPermitIDs(client string, number uint64, n int) []string {
	var id [groupIndex + 2 - clientBytes]byte
	binary.BigEndian.PutUint32(id[:], uint32(number))                 //nolint:gosec // a client makes fewer at a time
	binary.BigEndian.PutUint16(id[groupSize-clientBytes:], uint16(n)) //nolint:gosec // semaphore.MaxAtOnce at most
	return GroupOf(permitPrefix(client) + hex.EncodeToString(id[:]))
}

// GroupOf returns the ids of all permits that were requested together with the given one. It
// returns nil if the id is not of that form.
func GroupOf(id string) []string {
	raw, err := hex.DecodeString(id)
	if err != nil || len(raw) != groupIndex+2 {
		return nil
	}
	all := make([]string, binary.BigEndian.Uint16(raw[groupSize:]))
	for i := range all {
		binary.BigEndian.PutUint16(raw[groupIndex:], uint16(i)) //nolint:gosec // there are fewer
		all[i] = hex.EncodeToString(raw)
	}
	return all
}

// RawID returns an id as it is in Redis.
func RawID(id string) string {
	raw, _ := hex.DecodeString(id) // checked before
	return string(raw)
}

// CheckIDs refuses what cannot be the ids of permits.
func CheckIDs(ids []string) error {
	if len(ids) == 0 {
		return fault.Invalid("no permit id")
	}
	for _, id := range ids {
		raw, err := hex.DecodeString(id)
		if err != nil || len(raw) == 0 || hex.EncodeToString(raw) != id {
			return fault.Invalid("invalid permit id %.80q, "+
				"want lower-case hexadecimal digits, as Permit.ID and Holders return them", id)
		}
	}
	return nil
}
