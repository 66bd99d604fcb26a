-- SPDX-License-Identifier: MIT
-- include lock.lua
-- How many ms it takes at least until the token may be granted the lock, which
-- has left ms: one of several may be when the first lease ends.
local function wait_of(s, key, token, left)
    if not s or not s.used or kind(token) ~= 'shared' then
        return left
    end
    redis.pcall('ZREMRANGEBYSCORE', key, '-inf', now_of(s))
    local first = redis.pcall('ZRANGE', key, '0', '0', 'WITHSCORES')
    return math.max((tonumber(first[2]) or s.now) - s.now, 0)
end
