-- SPDX-License-Identifier: MIT
-- Never shortens a lease. The comparison is release.lua's. PEXPIRE is 0 where
-- an old server let the key expire between two commands of the script.
if redis.call('GETRANGE', KEYS[1], '0', '511') ~= ARGV[1] then
    return -2
end
local left, ttl = redis.call('PTTL', KEYS[1]), tonumber(ARGV[2])
if left >= ttl then
    return left
end
if redis.call('PEXPIRE', KEYS[1], ARGV[2]) == 0 then
    return -2
end
return ttl
