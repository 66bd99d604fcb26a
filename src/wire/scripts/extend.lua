-- SPDX-License-Identifier: MIT
-- Never shortens a lease: a key that somebody made permanent (-1) stays so. The
-- comparison is explained in release.lua. EXISTS and the check for 0 from
-- PEXPIRE are for old servers, where a key may expire between two commands of
-- the script.
if redis.call('GETRANGE', KEYS[1], '0', '511') ~= ARGV[1] then
    return -2
end
local left, ttl = redis.call('PTTL', KEYS[1]), tonumber(ARGV[2])
if left == -1 and redis.call('EXISTS', KEYS[1]) == 0 then
    return -2
end
if left < 0 or left >= ttl then
    return left
end
if redis.call('PEXPIRE', KEYS[1], ARGV[2]) == 0 then
    return -2
end
return ttl
