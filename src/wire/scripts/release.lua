-- SPDX-License-Identifier: MIT
-- Compare and delete; one byte more than the token is read, so that a longer
-- value does not pass for it.
if redis.call('GETRANGE', KEYS[1], 0, #ARGV[1]) == ARGV[1] then
    return redis.call('DEL', KEYS[1])
end
return 0
