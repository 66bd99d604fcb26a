-- SPDX-License-Identifier: MIT
-- KEYS marker  ARGV history, ms  ->  ms
--
-- Remembers for how long this server has been the primary of a history of data
-- (master_replid), which Redis itself does not tell: for ARGV[2] ms at least,
-- and at least since this script was first called for that history. Replies
-- what is known now. The value is the history and an age; the time since it was
-- written is 400 days less the key's TTL. So it needs no TIME, and jobs that
-- run once a year find it.
local keep = 34560000000
local age = tonumber(ARGV[2])
local history, base =
    string.match(redis.call('GETRANGE', KEYS[1], '0', '511'), '^(%x+) (%d+)$')
local left = redis.call('PTTL', KEYS[1])
if history == ARGV[1] and left > 0 and left <= keep then
    local known = tonumber(base) + keep - left
    if known >= age and left > keep - 86400000 then
        return known
    end
    age = math.max(age, known)
end
redis.call('SET', KEYS[1], ARGV[1] .. ' ' .. string.format('%.0f', age), 'PX',
    string.format('%.0f', keep))
return age
