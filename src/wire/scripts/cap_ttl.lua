-- SPDX-License-Identifier: MIT
-- KEYS key  ARGV token, ttl  ->  1 ttl set, 0 not there
--
-- Compare and set the TTL, even to a shorter one: for a release before
-- min_hold_ms is over.
--
-- An exclusive lock comes first: see extend.lua.
local key, token = KEYS[1], ARGV[1]
local s, wrong = redis.pcall('GETRANGE', key, '0', '511'), nil
if s == token then
    return redis.call('PEXPIRE', key, ARGV[2])
elseif not s.err then
    return 0
end
-- include lock.lua
s, wrong = content(key, s)
if wrong then
    return wrong
elseif holds(s, key, token) then
    return set_lease(s, key, token, ARGV[2])
end
return 0
