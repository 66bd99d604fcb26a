-- SPDX-License-Identifier: MIT
-- Compare and set the TTL, even to a shorter one: for a release before
-- min_hold_ms is over. The comparison is explained in release.lua.
if redis.call('GETRANGE', KEYS[1], '0', '511') == ARGV[1] then
    return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0
