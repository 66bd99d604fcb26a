-- SPDX-License-Identifier: MIT
-- KEYS key, line, mark, gap  ARGV token, lease, 1 if the caller may wait  ->
-- 1 granted, or {0, left ms}
--
-- Acquires the lock beside other holders, if it fits and nobody waits in line:
-- then the front of the line is served first. Somebody in line who cannot be
-- told does not count. In a gap the lock is left to programs that know nothing
-- of the line; and callers who may wait make room for one in the last 0.1 s of
-- each 30.1 s: s.pause of counted(). Nobody is granted the lock while a
-- client that waits without a line holds others back, see hold_back.lua. A
-- token that holds the lock already has a new lease.
if not redis.replicate_commands then
    return {err = 'ERR a lock with several holders needs Redis 3.2 or later,' ..
        ' or Valkey'}
end
redis.replicate_commands()
-- include grant.lua
local key, line, mark = KEYS[1], KEYS[2], KEYS[3]
local token, lease, tries = ARGV[1], ARGV[2], ARGV[3] ~= '1'
local marked = redis.call('EXISTS', mark, KEYS[4]) > 0
local left, s, wrong = -2, uncounted(key)
if s then
    left, s = s.left, counted(s, key)
end
-- As fits(), for the caller: the pause is not for one that never waits.
local function caller_fits(s)
    if tries and s and s.used then
        s.pause = false
    end
    return fits(s, token)
end
-- Most calls end here, before the functions are defined that others need.
if not marked then
    local fit, k, l, head = caller_fits(s)
    if fit and not holds(s, key, token) then
        s, wrong = put(s, key, token, lease, k, l, head)
        return wrong or 1
    end
end
-- include lock.lua
-- include serve.lua
-- include wait_of.lua
if s == nil then
    local denied = wrong
    s, left, wrong = look(key)
    wrong = wrong or s == false and denied
end
if wrong then
    return wrong
elseif extend_if_held(s, key, token, lease, left) then
    return 1
end
local gap = marked and s == false and redis.call('PTTL', KEYS[4]) - GAP_EVERY
if gap and gap > 0 and gap <= GAP_MAX then
    return {0, gap}
end
-- After a gap the mark is missing until somebody in line asks.
if marked and redis.call('EXISTS', mark, line) > 0 then
    local granted, _, stop, failure =
        serve(s, key, line, tick_of(redis.call('TIME')), nil)
    if failure then
        return failure
    elseif granted > 0 then
        s, left = look(key, token)
        -- If it was in line itself.
        if extend_if_held(s, key, token, lease, left) then
            return 1
        end
    end
    if stop then
        return {0, wait_of(s, key, token, left)}
    end
    local ends = hold_back_ends(mark) or 0
    if ends > 0 then
        ends = ends - ms_of(redis.call('TIME'))
        if ends > 0 and ends <= GAP_MAX then
            return {0, ends}
        end
    end
end
local fit, k, l, head = caller_fits(s)
if marked and fit then
    s, wrong = put(s, key, token, lease, k, l, head)
    return wrong or 1
end
return {0, wait_of(s, key, token, left)}
