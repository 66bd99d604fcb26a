-- SPDX-License-Identifier: MIT
-- Compare and let stand for a time that may be shorter than what is left: for a
-- holder who is done before the minimum is over. The comparison is
-- release.lua's.
if redis.call('GETRANGE', KEYS[1], '0', '511') == ARGV[1] then
    return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0
