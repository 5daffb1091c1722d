-- Fragment: the beginning of a script that changes an object once. It ends the script if the operation was
-- executed before or is past, or if the key is another kind of object. The function look of
-- semaphore/state.lua or latch/state.lua says that. Its first result is in free.
--@needs look
--@include shared/op
local before, over = recall()
if before or over then
  return over or tonumber(before) or before
end
local free, wrong = look()
if wrong then
  return wrong
end
