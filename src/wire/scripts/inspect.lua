-- SPDX-License-Identifier: MIT
-- KEYS key  ARGV '', a token or '*'  ->  {value up to 512 bytes, left}, or {};
-- of several holders {token, left}, or with '*' {token, left, token, left, ...}
--
-- Of several holders it shows the token that is given, if it holds the lock; or
-- else the one whose lease ends last; or with '*' all of them, that one first,
-- but no more than 1000.
--
-- An exclusive lock comes first: see extend.lua. EXISTS: see look().
local key, asks = KEYS[1], ARGV[1] or ''
local left = redis.call('PTTL', key)
local s, wrong = left ~= -2 and redis.pcall('GETRANGE', key, '0', '511'), nil
if not s or (s == '' and redis.call('EXISTS', key) == 0) then
    return {}
elseif not s.err then
    return {s, left}
end
-- include lock.lua
s, wrong = content(key, s)
if not s then
    return wrong or {}
elseif #asks > 1 then
    local ends = holds(s, key, asks)
    return ends and {asks, ends - s.now} or {}
end
local all = redis.call('ZRANGE', key, asks == '*' and '-1001' or '-2', '-2',
    'WITHSCORES')
local shown = {}
for i = #all - 1, 1, -2 do
    if all[i + 1] + 0 > s.now then
        shown[#shown + 1], shown[#shown + 2] = all[i], all[i + 1] - s.now
    end
end
return shown
