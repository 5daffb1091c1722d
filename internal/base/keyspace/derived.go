package keyspace

// RecordKey is the key of a client's record. It belongs to no lock and has no prefix, because its
// readers may use another one.
func RecordKey(record string) string { return "latchkey_client:{" + record + "}" }

// ClientKey returns the name of a key that belongs to one client, in the slot of another key. what
// is its purpose.
func ClientKey(key, client, what string) string {
	return "latchkey_op:" + Tag(key) + ":" + client + ":" + what
}

// LatchKey has the rounds of a latch.
func LatchKey(tag string) string { return "latchkey_latch:" + tag }

// LeaderKey has what the leader of an election announces.
func LeaderKey(tag string) string { return "latchkey_leader:" + tag }

// FairQueueKey is Redisson's queue of a fair lock.
func FairQueueKey(tag string) string { return "redisson_lock_queue:" + tag }

// WritersKey has the writers that wait for a read/write lock.
func WritersKey(tag string) string { return "latchkey_rw_writers:" + tag }

// TotalKey has the total number of permits of a semaphore.
func TotalKey(tag string) string { return "latchkey_sc_total:" + tag }

// SemQueueKey is the queue of a Semaphore.
func SemQueueKey(tag string) string { return "latchkey_sc_waiting:" + tag }

// PermitQueueKey is the queue for permits with ids.
func PermitQueueKey(tag string) string { return "latchkey_sc_queue:" + tag }

// PermitVoidKey marks a permit that must not be acquired any more: see lua/permit.
func PermitVoidKey(key, id string) string {
	return "latchkey_permit_void:" + Tag(key) + ":" + id
}

// PermitIDsKey has the permits that are acquired, with the ends of their leases; Redisson's.
func PermitIDsKey(key string) string { return Tag(key) + ":timeout" }

// NumberKindKey is the key that says which kind of object a number is: see
// lua/shared/number_kind.lua. Its name is among those for which users of any such kind have a
// permission.
func NumberKindKey(key string) string {
	if WholeTag(key) { // x and {x} are two objects
		return "latchkey_op:" + key + ":kind_tag"
	}
	return "latchkey_op:" + Tag(key) + ":kind"
}

// FairKeys returns the keys that every script for a fair lock takes.
func (k *Keys) FairKeys() []string {
	tag := Tag(k.Key)
	return []string{k.Key, FairQueueKey(tag), "redisson_lock_timeout:" + tag, "latchkey_fair:" + tag, k.Token()}
}

// SemQueueKeys returns the keys of those that wait for the permits of a Semaphore.
func (k *Keys) SemQueueKeys() []string {
	tag := Tag(k.Key)
	return []string{SemQueueKey(tag), "latchkey_sc_calls:" + tag, "latchkey_sc_bar:" + tag}
}

// FairPermitKeys returns the keys that every script of the queue for permits with ids takes.
func (k *Keys) FairPermitKeys() []string {
	tag := Tag(k.Key)
	return []string{
		k.Key, PermitIDsKey(k.Key), PermitQueueKey(tag), "latchkey_sc_alive:" + tag, "latchkey_sc_grants:" + tag,
		NumberKindKey(k.Key),
	}
}

// WaiterChannel is the channel on which the lock tells an owner that its turn has come.
func (k *Keys) WaiterChannel(owner string) string { return k.Channel + ":" + owner }

// LookKeys returns the keys of an object for lua/look/objects.lua.
func (k *Keys) LookKeys() []string {
	tag := Tag(k.Key)
	return []string{k.Key, k.Token(), k.Queue(), FairQueueKey(tag), WritersKey(tag),
		TotalKey(tag), PermitIDsKey(k.Key), LatchKey(tag), PermitQueueKey(tag), NumberKindKey(k.Key), SemQueueKey(tag)}
}
