-- SPDX-License-Identifier: MIT
-- KEYS key, record  ARGV line  ->  1 removed, 0 not there, -1 in progress
--
-- Removes the record if its line is still the one that was seen. The replies:
-- 1 removed; 0 there is no such record; -1 the work is in progress.
-- include record.lua
-- include lock.lua
local r, failure = record_of(KEYS[2])
if failure then
    return failure
end
if not r or r.line ~= ARGV[1] then
    return 0
end
if holds(content(KEYS[1]), KEYS[1], r.token) then
    return -1
end
return redis.call('DEL', KEYS[2])
