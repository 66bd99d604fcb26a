-- SPDX-License-Identifier: MIT
-- KEYS key, the key before it  ARGV token, ttl  ->  OK, or nil if the key
-- exists, or the one before it does not hold the token.
--
-- Acquires one of several names, in the order of their keys: only if the same
-- token holds the one before it. So the acquires of all of them can be sent
-- together, and take the names from the first one on up to one that is busy,
-- but none behind it.
local before = redis.pcall('GETRANGE', KEYS[2], '0', '511')
if before ~= ARGV[1] then
    return false
end
return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])
