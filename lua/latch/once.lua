-- Fragment: the beginning of a script that changes a latch once. It ends the script if
-- the operation was executed before or is past, or if the key is another kind of object.
--@include shared/tell
--@include shared/op
--@include latch/state
local before, past_it = recall()
if before or past_it then
  return past_it or tonumber(before)
end
local wrong = sync()
if wrong then
  return wrong
end
