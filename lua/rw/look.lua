-- Fragment: the beginning of most scripts of a read/write lock: it looks at the lock, and ends the script
-- if the key is another kind of object. It leaves the mode of the lock, nil if nobody holds it, and the read
-- holds and write holds of the owner.
--@needs owner
--@include rw/state
local mode, reads, writes, wrong = look(owner)
if wrong then
  return wrong
end
