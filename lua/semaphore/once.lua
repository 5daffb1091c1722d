-- Fragment: the beginning of a script that changes a semaphore once. It ends the script
-- if the operation was executed before or is past, or if the key is another kind of object.
-- It leaves the available permits in free, nil if nobody has set them.
--@include shared/op
--@include semaphore/state
local done, past = recall()
if done or past then
  return past or tonumber(done)
end
local free, wrong = look()
if wrong then
  return wrong
end
