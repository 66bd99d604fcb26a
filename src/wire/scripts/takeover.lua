-- SPDX-License-Identifier: MIT
-- Compare and set: what a dead holder of the timestamp scheme left becomes a
-- token with an end. The comparison is release.lua's; who gave it an end since
-- is alive.
-- include put.lua
if redis.call('GETRANGE', KEYS[1], '0', '511') ~= ARGV[3] or
    redis.call('PTTL', KEYS[1]) ~= -1 then
    return false
end
return put(KEYS[1], ARGV[2], ARGV[1])
