-- SPDX-License-Identifier: MIT
-- KEYS key  ARGV token, ttl  ->  left ms, -1, or -2
--
-- Never shortens a lease: a key that somebody made permanent (-1) stays so.
--
-- look() and extend_if_held() for an exclusive lock, written out: it must not
-- pay for the functions of the other kinds.
local key, token, lease = KEYS[1], ARGV[1], ARGV[2]
local left, s = redis.call('PTTL', key), nil
if left == -2 then
    return left
elseif string.byte(token, 37) ~= 43 then
    s = redis.pcall('GETRANGE', key, '0', '511')
    if s == token then
        if left < 0 then
            return left
        elseif left > lease + 0 then
            lease = string.format('%.0f', left)
        end
        return redis.call('PEXPIRE', key, lease) == 1 and lease + 0 or -2
    elseif not s.err then
        return -2
    end
end
-- include lock.lua
local wrong
if s == nil then
    s = uncounted(key, left)
end
if s == nil or (s and s.err) then
    s, wrong = content(key, s)
end
return wrong or extend_if_held(s, key, token, lease, left) or -2
