-- SPDX-License-Identifier: MIT
-- KEYS key  ARGV token, ttl  ->  left ms, -1, or -2
--
-- Never shortens a lease: a key that somebody made permanent (-1) stays so.
-- include lock.lua
local s, left, wrong = look(KEYS[1])
if wrong then
    return wrong
end
return held(s, KEYS[1], ARGV[1], ARGV[2], left) or -2
