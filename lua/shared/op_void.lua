-- Give up an operation whose outcome is unknown: a copy of it that arrives late does
-- nothing. What the operation has already done stays.
--
--@keys note
--@args number
--
-- Reply   integer: 1 it was not executed and never will be, 0 it was executed, or is past
--
-- Cost: at most 3 commands. Works on a server that is out of memory. Idempotent.
--@include shared/op
local done, past = recall()
if done or past then
  return 0
end
room()
remember(void)
return 1
