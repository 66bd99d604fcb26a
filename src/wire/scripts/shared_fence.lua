-- SPDX-License-Identifier: MIT
-- KEYS key, counter  ARGV token, the counter's shortest ttl  ->  the fencing
-- token of the holders, or 0: the key does not have the token
--
-- The fencing token of a lock that several hold. All who hold it together have
-- the same one, which the first who asks draws. So it is greater than that of
-- the holder before them, and less than that of the next one. The next number
-- and the counter's TTL follow the rules of fence.lua. The counter is written
-- each time: one that was lost is restored, and WAIT counts the replicas that
-- have what its own connection has written.
-- include lock.lua
-- include counter.lua
local key, token = KEYS[1], ARGV[1]
local s, wrong = content(key)
if wrong and not is_other_type(wrong) then
    return wrong
elseif not s or not s.used or not holds(s, key, token) then
    return 0
end
local last, failure = counter_of(KEYS[2])
if failure then
    return failure
end
local now = clock()
local drawn = tonumber(string.sub(s.number, 2))
local fence = drawn or math.max(last + 1, now)
-- Who may not remove the old head must not add the new one.
redis.call('ZREM', key, 'nxl=')
count(KEYS[2], math.max(last, fence), now, ARGV[2])
if not drawn then
    redis.call('ZADD', key, FAR + s.since,
        s.head .. '#' .. string.format('%.0f', fence))
    redis.call('ZREM', key, s.head)
end
return fence
