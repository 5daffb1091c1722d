-- Fragment: the keys and arguments of the scripts that serve the queue of a semaphore whose permits have neither ids nor
-- leases. Each script says what ARGV[2], and ARGV[9] and on, are.
--
-- KEYS[1] permits, KEYS[2] total (see semaphore/state.lua), KEYS[3] note (see shared/op.lua)
-- KEYS[4] kind (see shared/number_kind.lua)
-- KEYS[5] queue, KEYS[6] calls, KEYS[7] bar (see semaphore/serve.lua)
-- ARGV[1] number of the operation
-- ARGV[3] ms for which permits are kept for a client that is called
-- ARGV[4] PUBLISH or SPUBLISH, ARGV[5] channel
-- ARGV[6], ARGV[7] prefix and suffix of the channels of clients
-- ARGV[8] '1' if the server counts all listeners of these channels
local key, total, note, kind, queue, calls, bar = unpack(KEYS)
local number, keeping = ARGV[1], tonumber(ARGV[3])
local publish, channel, clients, suffix, counts = ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8] == '1'
