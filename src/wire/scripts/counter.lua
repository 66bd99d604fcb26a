-- SPDX-License-Identifier: MIT
-- Reads and writes a fencing counter.
-- include store.lua
-- The counter: a decimal number below 2^53, or no key at all, which is 0.
-- Anything else is the second value, an error.
local function counter_of(key)
    local seen = redis.pcall('GETRANGE', key, '0', '16')
    if seen.err and not string.find(seen.err, 'wrong kind') then
        return nil, seen
    end
    local digits = string.match(seen.err or seen, '^%d*$')
    local last = digits == '' and 0 or tonumber(digits or '')
    if last and last < 9007199254740991 then
        return last
    end
    return nil, {err = "WRONGTYPE key '" .. key ..
        "' should hold the fencing counter but holds something else"}
end
-- The server's clock in microseconds; nil where TIME may not precede a write
-- (before 3.2). Called before the first write.
local function clock()
    if redis.replicate_commands and redis.replicate_commands() then
        local time = redis.call('TIME')
        return time[1] * 1000000 + time[2]
    end
end
-- Sets the counter. When it expires, the clock must have passed its number, so
-- that the next number is greater. So a counter far ahead of the clock gets no
-- TTL, and one that has no TTL stays so. keep: its shortest TTL in ms.
local function count(key, fence, now, keep)
    local left = now and redis.call('PTTL', key) or -1
    local number = string.format('%.0f', fence)
    if left ~= -1 and fence - now <= keep * 500 then
        store(key, string.format('%.0f', math.max(left, keep)), number)
    else
        redis.call('SET', key, number)
    end
end
