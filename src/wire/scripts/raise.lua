-- SPDX-License-Identifier: MIT
-- Raises the fencing counter to the number of a grant over several servers, or
-- draws the next number (ARGV[2] is 0) for a lock that was handed over, if the
-- key still has the token. Returns the counter; 0: the key does not have the
-- token. The next number and the counter's TTL follow the rules of fence.lua.
-- include put.lua
-- include counter.lua
if redis.call('GETRANGE', KEYS[1], '0', '511') ~= ARGV[1] then
    return 0
end
local last, failure = counter_of(KEYS[2])
local fence, draws = tonumber(ARGV[2]), ARGV[2] == '0'
if draws and failure then
    return failure
elseif draws then
    fence = last + 1
elseif last and last >= fence then
    return last
end
local keep = nil
if redis.replicate_commands and redis.replicate_commands() then
    local time, left = redis.call('TIME'), redis.call('PTTL', KEYS[2])
    local now = time[1] * 1000000 + time[2]
    fence = draws and math.max(fence, now) or fence
    if left ~= -1 and fence - now <= ARGV[3] * 500 then
        keep = string.format('%.0f', math.max(left, ARGV[3]))
    end
end
if keep then
    put(KEYS[2], keep, string.format('%.0f', fence))
else
    redis.call('SET', KEYS[2], string.format('%.0f', fence))
end
return fence
