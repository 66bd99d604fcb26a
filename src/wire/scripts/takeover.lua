-- SPDX-License-Identifier: MIT
-- KEYS key  ARGV token, ttl, old value  ->  OK, or nil: value differs
--
-- Compare and set: replaces what a dead holder of the timestamp scheme left
-- with a token that has a TTL. The comparison is explained in release.lua. A
-- key that has got a TTL in the meantime has a live holder.
-- include store.lua
if redis.call('GETRANGE', KEYS[1], '0', '511') ~= ARGV[3] or
    redis.call('PTTL', KEYS[1]) ~= -1 then
    return false
end
return store(KEYS[1], ARGV[2], ARGV[1])
