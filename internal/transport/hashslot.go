package transport

import "strings"

// KeySlot returns the cluster slot of a key: CRC-16/XMODEM of its hash tag, or of
// the whole, as the Redis cluster specification has it.
func KeySlot(key string) uint16 {
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

// HashTag returns a key in braces, or as it is if it brings its own, so that what is put
// around it stays in the slot of the key.
func HashTag(key string) string {
	if strings.Contains(key, "{") {
		return key
	}
	return "{" + key + "}"
}

// ClientKey returns the name of a key in the slot of another that belongs to one client, which
// has it for the purpose that what names.
func ClientKey(key, client, what string) string {
	return "latchkey_op:" + HashTag(key) + ":" + client + ":" + what
}
