-- SPDX-License-Identifier: MIT
-- KEYS key, line, mark, gap  ARGV token, lease, 1 if the caller may wait  ->
-- {1} granted, {0, left ms}
--
-- Acquires the lock beside other holders, if it fits and nobody waits in line:
-- then the front of the line is served first. Somebody in line who cannot be
-- told does not count. In a gap the lock is left to programs that know nothing
-- of the line; and callers who may wait make room for one in the last 0.1 s of
-- each 30.1 s: s.pause of several_holders(). Nobody is granted the lock while a
-- client that waits without a line holds others back, see hold_back.lua. A
-- token that holds the lock already has a new lease.
-- include lock.lua
if not redis.replicate_commands then
    return {err = 'ERR a lock with several holders needs Redis 3.2 or later,' ..
        ' or Valkey'}
end
redis.replicate_commands()
local key, line, mark, token = KEYS[1], KEYS[2], KEYS[3], ARGV[1]
local s, left, wrong = look(key, token)
if wrong then
    return wrong
elseif extend_if_held(s, key, token, ARGV[2], left) then
    return {1}
end
local function take()
    if ARGV[3] ~= '1' and s and s.used then
        s.pause = false
    end
    if fits(s, token) then
        s, wrong = put(s, key, token, ARGV[2])
        return wrong or {1}
    end
end
-- Most calls end here, before the functions are defined that know of the line.
local marked = redis.call('EXISTS', mark, KEYS[4]) > 0
local reply = not marked and take()
if reply then
    return reply
end
-- include serve.lua
-- include wait_of.lua
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
return marked and take() or {0, wait_of(s, key, token, left)}
