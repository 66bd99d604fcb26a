-- SPDX-License-Identifier: MIT
-- KEYS key  ARGV token, ttl  ->  OK, or nil if the key exists. For servers
-- whose SET knows no options.
--
-- One write sets the value and the TTL together: a key without a TTL would
-- block its name forever if something failed between two writes.
if redis.call('EXISTS', KEYS[1]) == 1 then
    return false
end
return redis.call('PSETEX', KEYS[1], ARGV[2], ARGV[1])
