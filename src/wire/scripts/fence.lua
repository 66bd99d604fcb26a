-- SPDX-License-Identifier: MIT
-- Acquires the lock and draws a fencing token, a number that only grows. Where
-- TIME may precede a write (from 3.2), the number is at least the server's
-- clock, so it grows even after a loss of data. The counter is written before
-- the key: an unused number does no harm. Numbers are exact below 2^53.
-- ARGV[4], if given, is an expired timestamp that a dead holder left: a key
-- with exactly this value and no TTL counts as free, as in takeover.lua.
-- include put.lua
-- include counter.lua
local last, failure = counter_of(KEYS[2])
if failure then
    return failure
end
if redis.call('EXISTS', KEYS[1]) == 1 and not (ARGV[4] and
    redis.call('GETRANGE', KEYS[1], '0', '511') == ARGV[4] and
    redis.call('PTTL', KEYS[1]) == -1) then
    return false
end
local fence, keep = last + 1, nil
-- When the counter expires, the clock must have passed its number, so that the
-- next number is greater. So a counter far ahead of the clock gets no TTL, and
-- one that has no TTL stays so.
if redis.replicate_commands and redis.replicate_commands() then
    local time, left = redis.call('TIME'), redis.call('PTTL', KEYS[2])
    local now = time[1] * 1000000 + time[2]
    fence = math.max(fence, now)
    if left ~= -1 and fence - now <= ARGV[3] * 500 then
        keep = string.format('%.0f', math.max(left, ARGV[3]))
    end
end
if keep then
    put(KEYS[2], keep, string.format('%.0f', fence))
else
    redis.call('SET', KEYS[2], string.format('%.0f', fence))
end
put(KEYS[1], ARGV[2], ARGV[1])
return fence
