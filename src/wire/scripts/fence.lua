-- SPDX-License-Identifier: MIT
-- KEYS key, counter  ARGV token, ttl, the counter's shortest ttl, and if it
-- replaces one, the old value  ->  a fencing token, or nil
--
-- Acquires the lock and draws a fencing token, a number that only grows. Where
-- TIME may precede a write (from 3.2), the number is at least the server's
-- clock, so it grows even after a loss of data. The counter is written before
-- the key: an unused number does no harm. Numbers are exact below 2^53.
-- ARGV[4], if given, is an expired timestamp that a dead holder left: a key
-- with exactly this value and no TTL counts as free, as in takeover.lua.
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
local now = clock()
local fence = math.max(last + 1, now or 0)
count(KEYS[2], fence, now, ARGV[3])
store(KEYS[1], ARGV[2], ARGV[1])
return fence
