-- SPDX-License-Identifier: MIT
-- Compare and delete. More bytes than any token has are read, so that a longer
-- value does not pass for one. Bounds as strings: a number is printed first,
-- which takes as long as the rest.
if redis.call('GETRANGE', KEYS[1], '0', '511') == ARGV[1] then
    return redis.call('DEL', KEYS[1])
end
return 0
