package latchkey

import (
	"encoding/binary"
	"encoding/hex"
	"regexp"
	"strings"

	"github.com/latchkey-go/latchkey/internal/base/fault"
)

// isOurPermit reports whether the id of a permit was made by this library: it begins with half of the client's
// id.
func isOurPermit(id string) bool { return permitShape.MatchString(id) }

var permitShape = regexp.MustCompile(`^[0-9a-f]{12}8[0-9a-f]{19}$`)

// permitIDs returns the beginning of the ids of a client's permits: recordBytes, in hexadecimal digits.
func (c *Client) permitIDs() string { return strings.ReplaceAll(c.id[:recordID], "-", "") }

// Offsets in the bytes of an id: how many permits were requested together, and which of them this
// one is.
const (
	groupSize  = 12
	groupIndex = 14
)

// newPermitIDs makes ids for permits that are requested together. They begin with half of the id of the client, so that
// others can find out which client has the permits.
func (c *Client) newPermitIDs(n int) []string {
	var id [groupIndex + 2 - recordBytes]byte
	binary.BigEndian.PutUint32(id[:], uint32(c.registry.number()))    //nolint:gosec // see freshPermits
	binary.BigEndian.PutUint16(id[groupSize-recordBytes:], uint16(n)) //nolint:gosec // maxPermits at most
	return groupOf(c.permitIDs() + hex.EncodeToString(id[:]))
}

// groupOf returns the ids of all permits that were requested together with the given one. It
// returns nil if the id is not of that form.
func groupOf(id string) []string {
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

// rawID returns an id as it is in Redis.
func rawID(id string) string {
	raw, _ := hex.DecodeString(id) // checked before
	return string(raw)
}

func checkIDs(ids []string) error {
	if len(ids) == 0 {
		return fault.Invalid("no permit id")
	}
	for _, id := range ids {
		raw, err := hex.DecodeString(id)
		if err != nil || len(raw) == 0 || hex.EncodeToString(raw) != id {
			return fault.Invalid("invalid permit id %.80q, want lower-case hexadecimal digits, as Permit.ID and Holders return them", id)
		}
	}
	return nil
}
