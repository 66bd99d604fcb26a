-- SPDX-License-Identifier: MIT
-- Reads a fencing counter: a decimal number below 2^53, or no key at all, which
-- is 0. Anything else is the second value, an error.
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
