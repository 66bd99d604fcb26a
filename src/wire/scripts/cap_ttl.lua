-- SPDX-License-Identifier: MIT
-- KEYS key  ARGV token, ttl  ->  1 ttl set, 0 not there
--
-- Compare and set the TTL, even to a shorter one: for a release before
-- min_hold_ms is over.
-- include lock.lua
local s, wrong = content(KEYS[1])
if wrong then
    return wrong
elseif holds(s, KEYS[1], ARGV[1]) then
    return set_lease(s, KEYS[1], ARGV[1], ARGV[2])
end
return 0
