-- SPDX-License-Identifier: MIT
-- KEYS key, line, mark, gap  ARGV token, lease, client, window, 1 to join, 1 to
-- count the channel's listeners  ->  {1} granted, {0, left ms, members ahead,
-- listeners}, {-1} not in line
--
-- A token joins the line (ARGV[5] is 1), or shows that it still waits there.
-- Whoever finds the lock free grants it to the first in line, but not in a gap:
-- for a while, which KEYS[4] measures, the lock is free for programs that know
-- nothing of the line. Nor to one that this version does not know, or behind
-- it. The replies: {1}: the lock has the token. {0, PTTL of the lock or of the
-- gap, members ahead}: it waits; 0 are ahead if none of them could be told; if
-- ARGV[6] is 1, the number of listeners of its channel follows, or -1. {-1}: it
-- is not in line.
--
-- A token joins once, and leaves the line before the key is set to it; so it is
-- granted at most once. An error says that a token which was to join has not:
-- nothing of it is left. Nothing raises an error after a grant to this token.
-- include serve.lua
if redis.replicate_commands then
    redis.replicate_commands()
end
local key, line, mark = KEYS[1], KEYS[2], KEYS[3]
local token, lease = ARGV[1], ARGV[2]
local s, left, wrong = look(key, token)
if wrong then
    return wrong
elseif extend_if_held(s, key, token, lease, left) then
    return {1}
end
local now = tick_of(redis.call('TIME'))
local me = token .. ' ' .. ARGV[3] .. ' ' .. lease .. ' ' .. ARGV[4]
local ticket, ahead = redis.call('ZSCORE', line, me), 0
-- Whoever this token joins behind, if it joins.
local last
if ticket then
    ticket = math.floor(ticket / 4194304)
    ahead = redis.call('ZRANK', line, me)
elseif ARGV[5] ~= '1' then
    return {-1}
else
    -- This removes nothing. A user who may not leave must not join.
    redis.call('ZREM', line, me)
    last = redis.call('ZRANGE', line, '-1', '-1', 'WITHSCORES')
    ticket = last[1] and math.floor(last[2] / 4194304) + 1 or 1
    if ticket >= 2147483647 then
        -- A double has no room for more. All others join anew.
        redis.call('DEL', line)
        ticket, last = 1, {}
    elseif last[1] then
        -- Each time, so that a user who lacks a permission learns it at once.
        ahead = redis.call('ZCARD', line)
        if ticket % 8 == 0 then
            -- Look at 16 others, so that the dead do not pile up.
            local at = ticket * 2 % ahead
            local some = redis.call('ZRANGE', line, at, at + 15, 'WITHSCORES')
            for i = 1, #some, 2 do
                local _, _, _, window = waiter_of(some[i])
                if is_dead(now, some[i + 1], window or 0) then
                    redis.call('ZREM', line, some[i])
                end
            end
        end
    end
end
-- A value that a later version gave to the mark stays. In a gap there is none.
local marked = redis.call('PEXPIRE', mark, '15000') == 1
local gap = marked and 0 or math.max(0, redis.call('PTTL', KEYS[4]) - GAP_EVERY)
if gap > GAP_MAX then
    redis.call('PEXPIRE', KEYS[4], GAP_EVERY)
    gap = 0
end
if gap > 0 then
    redis.call('SET', KEYS[4], '1', 'PX', gap + GAP_EVERY, 'XX')
elseif last or not marked then
    -- Each time that a token joins, so that a user who may not SET does not.
    redis.call('SET', mark, '1', 'PX', '15000', 'NX')
end
local lasts = redis.call('PEXPIRE', line, '15000')
-- Who is far behind in a long line shows less often that it is alive: at
-- intervals that are 1/64 longer for each place, up to a window of 15 s. That
-- much is added to the time of its sign of life.
local window = ARGV[4] + 0
local patience = math.floor(
    math.max(0, math.min(window * ahead / 64, 480 - window)))
local score = ticket * 4194304 + (now + patience) % 4194304
local failure =
    redis.pcall('ZADD', line, string.format('%.0f', score), me)
if lasts == 0 then
    redis.call('PEXPIRE', line, '15000')
end
-- How many are ahead, if that is known without a look along the line.
local others
if last and s ~= false then
    -- If the last one can be told, this token is not the first, and somebody
    -- else waits until the lock is free; else, and for the others, the whole
    -- line says.
    if last[1] then
        local _, client, _, its = waiter_of(last[1])
        if its and not is_dead(now, last[2], its) and
            hears(channel_of(client, key)) ~= 0 then
            others = ahead
        end
    elseif not fits(s, token) then
        others = 0
    end
end
if s == false and gap > 0 then
    s, left = nil, gap
end
failure = not tonumber(failure) and failure
if not failure and not others then
    local granted, mine, stop
    granted, mine, stop, failure = serve(s, key, line, now, me)
    if mine then
        if redis.pcall('EXISTS', line) == 0 then
            redis.pcall('DEL', mark)
        end
        return {1}
    elseif granted > 0 and not failure then
        local seen
        seen, s, left = pcall(look, key, token)
        if not seen then
            failure = type(s) == 'table' and s or {err = s}
        end
    end
    others = stop == me and 0 or math.max(ahead, 1)
end
if failure then
    if last then
        redis.pcall('ZREM', line, me)
    end
    if not marked and redis.pcall('EXISTS', line) == 0 then
        redis.pcall('DEL', mark)
    end
    return failure
end
local heard = ARGV[6] == '1' and hears(channel_of(ARGV[3], key)) or nil
if not s or not s.used then
    return {0, left, others, heard}
end
-- include wait_of.lua
return {0, wait_of(s, key, token, left), others, heard}
