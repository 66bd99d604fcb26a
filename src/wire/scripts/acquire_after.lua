-- SPDX-License-Identifier: MIT
-- KEYS a key, and those behind it  ARGV token, ttl  ->  how many of those
-- behind it were acquired, from the first of them on.
--
-- Acquires several names, in the order of their keys, if the same token holds
-- the one before them: up to one that is busy, and none behind it.
local token = ARGV[1]
local before = redis.pcall('GETRANGE', KEYS[1], '0', '511')
if before ~= token then
    return 0
end
for i = 2, #KEYS do
    local set = redis.pcall('SET', KEYS[i], token, 'NX', 'PX', ARGV[2])
    if i == 2 and set and set.err then
        return set
    elseif not set or set.err then
        -- What was acquired must not be hidden by an error.
        return i - 2
    end
end
return #KEYS - 1
