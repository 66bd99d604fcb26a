-- SPDX-License-Identifier: MIT
-- Raises the fencing counter to the number of a grant over several servers, if
-- the key still has the token. Returns the counter; 0: the key does not have
-- the token. The counter's TTL follows the rule of fence.lua.
-- include put.lua
if redis.call('GETRANGE', KEYS[1], '0', '511') ~= ARGV[1] then
    return 0
end
local seen = redis.call('GETRANGE', KEYS[2], '0', '16')
local last = tonumber(string.match(seen, '^%d+$') or '')
local fence = tonumber(ARGV[2])
if last and last >= fence then
    return last
end
if redis.replicate_commands and redis.replicate_commands() then
    local time, left = redis.call('TIME'), redis.call('PTTL', KEYS[2])
    local now = time[1] * 1000000 + time[2]
    if left ~= -1 and fence - now <= ARGV[3] * 500 then
        local keep = string.format('%.0f', math.max(left, ARGV[3]))
        put(KEYS[2], keep, ARGV[2])
        return fence
    end
end
redis.call('SET', KEYS[2], ARGV[2])
return fence
