package keyspace

import "strings"

// Slot returns the cluster slot of a key: the CRC-16/XMODEM of its hash tag, or of the whole key
// if it has none, as the Redis cluster specification defines it.
func Slot(key string) uint16 {
	if open := strings.IndexByte(key, '{'); open >= 0 {
		if end := strings.IndexByte(key[open+1:], '}'); end > 0 {
			key = key[open+1 : open+1+end]
		}
	}
	var crc uint16
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc & 16383
}

// Tag returns a key in braces, or unchanged if it contains braces already. Text added around
// the result does not change the slot.
func Tag(key string) string {
	if strings.Contains(key, "{") {
		return key
	}
	return "{" + key + "}"
}

// WholeTag reports whether braces enclose a whole key, as in {x}, which derives the same keys as x.
func WholeTag(key string) bool { return strings.HasPrefix(key, "{") && strings.HasSuffix(key, "}") }
