-- Fragment: keep makes the notes of fair/notes.lua expire some time after the last of them
-- was written.
--@needs notes stale
local function keep()
  redis.call('pexpire', notes, 60000 + 10 * (stale or 0))
end
