-- SPDX-License-Identifier: MIT
-- One write, which sets value and end together: a key without an end would
-- block its name for ever if anything failed between two.
if redis.call('EXISTS', KEYS[1]) == 1 then
    return false
end
return redis.call('PSETEX', KEYS[1], ARGV[2], ARGV[1])
