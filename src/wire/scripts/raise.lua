-- SPDX-License-Identifier: MIT
-- KEYS key, counter  ARGV token, number or 0 for the next one, the counter's
-- shortest ttl  ->  the counter, or 0
--
-- Raises the fencing counter to the number of a grant over several servers, or
-- draws the next number (ARGV[2] is 0) for a lock that was handed over, if the
-- key still has the token. Returns the counter; 0: the key does not have the
-- token. The next number and the counter's TTL follow the rules of fence.lua.
-- A counter that is high enough is written as well, because WAIT counts the
-- replicas that have what its own connection has written. A key that holds no
-- counter is an error, as in fence.lua.
-- include lock.lua
-- include counter.lua
local s, wrong = content(KEYS[1])
if wrong and not is_other_type(wrong) then
    return wrong
elseif not holds(s, KEYS[1], ARGV[1]) then
    return 0
end
local last, failure = counter_of(KEYS[2])
local fence, draws = tonumber(ARGV[2]), ARGV[2] == '0'
if failure then
    return failure
end
local now = clock()
if draws then
    fence = math.max(last + 1, now or 0)
else
    fence = math.max(last, fence)
end
count(KEYS[2], fence, now, ARGV[3])
return fence
