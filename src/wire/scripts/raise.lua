-- SPDX-License-Identifier: MIT
-- Raise the counter of fencing numbers to that of a grant over several servers,
-- while the token stands. Says what it is then; 0: the token does not stand.
if redis.call('GETRANGE', KEYS[1], '0', '511') ~= ARGV[1] then
    return 0
end
local seen = redis.call('GETRANGE', KEYS[2], '0', '16')
local last = tonumber(string.match(seen, '^%d+$') or '')
local fence = tonumber(ARGV[2])
if last and last >= fence then
    return last
end
redis.call('SET', KEYS[2], ARGV[2])
return fence
