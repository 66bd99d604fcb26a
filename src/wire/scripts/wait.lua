-- SPDX-License-Identifier: MIT
-- A token joins the line (ARGV[5] is 1), or shows that it still waits there.
-- Whoever finds the lock free grants it to the first in line. The replies:
-- {1}: the lock has the token. {0, PTTL of the lock, 1 if nobody is ahead who
-- could be told}: it waits; if ARGV[6] is 1, the number of listeners of its
-- channel follows, or -1. {-1}: it is not in line.
--
-- A token joins once, and leaves the line before the key is set to it; so it is
-- granted at most once. What may be refused is used before the token joins, and
-- nothing raises an error after a grant.
-- include line.lua
if redis.replicate_commands then
    redis.replicate_commands()
end
local key, line, mark = KEYS[1], KEYS[2], KEYS[3]
local token, lease = ARGV[1], ARGV[2]
local left = redis.call('PTTL', key)
if left ~= -2 and redis.call('GETRANGE', KEYS[1], '0', '511') == token then
    -- A lease is never shortened.
    if left >= 0 and left < lease + 0 then
        redis.call('PEXPIRE', key, lease)
    end
    return {1}
end
local now = tick_of(redis.call('TIME'))
local me = token .. ' ' .. ARGV[3] .. ' ' .. lease .. ' ' .. ARGV[4]
local ticket = redis.call('ZSCORE', line, me)
-- Whoever this token joins behind, if it joins.
local last
if ticket then
    ticket = math.floor(ticket / 4194304)
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
        local count = redis.call('ZCARD', line)
        if ticket % 8 == 0 then
            -- Look at 16 others, so that the dead do not pile up.
            local at = ticket * 2 % count
            local some = redis.call('ZRANGE', line, at, at + 15, 'WITHSCORES')
            for i = 1, #some, 2 do
                local window = string.match(some[i], ' (%d+)$')
                if is_dead(now, some[i + 1], window or 0) then
                    redis.call('ZREM', line, some[i])
                end
            end
        end
    end
end
redis.call('SET', mark, '1', 'PX', '15000')
local lasts = redis.call('PEXPIRE', line, '15000')
redis.call('ZADD', line,
    string.format('%.0f', ticket * 4194304 + now % 4194304), me)
if lasts == 0 then
    redis.call('PEXPIRE', line, '15000')
end
local function busy(ttl, first)
    return {0, ttl, first, ARGV[6] == '1' and listeners(ARGV[3]) or nil}
end
if last and left ~= -2 then
    -- Nothing can be granted. If the last one can be told, this token is not
    -- the first; else, and for the others, the whole line says.
    if not last[1] then
        return busy(left, 1)
    end
    local channel, window = string.match(last[1], '^%S+ (%S+) %d+ (%d+)$')
    if window and not is_dead(now, last[2], window) and
        listeners(channel) ~= 0 then
        return busy(left, 0)
    end
end
local from, to, size, members = '0', '1', 2, nil
repeat
    members = redis.call('ZRANGE', line, from, to, 'WITHSCORES')
    for i = 1, #members, 2 do
        local who, channel, its, window =
            string.match(members[i], '^(%S+) (%S+) (%d+) (%d+)$')
        if members[i] == me then
            if left ~= -2 then
                return busy(left, 1)
            end
            redis.call('ZREM', line, me)
            redis.call('SET', key, token, 'PX', lease)
            if redis.pcall('EXISTS', line) == 0 then
                redis.pcall('DEL', mark)
            end
            return {1}
        elseif not who or is_dead(now, members[i + 1], window) then
            redis.call('ZREM', line, members[i])
        elseif listeners(channel) == 0 then
            -- It lives, but cannot be told now: it keeps its place.
            from = from + 1
        elseif left ~= -2 then
            return busy(left, 0)
        else
            redis.call('ZREM', line, members[i])
            redis.call('SET', key, who, 'PX', its)
            if channel ~= '-' then
                redis.pcall('PUBLISH', channel, who)
            end
            return busy(its + 0, 0)
        end
    end
    size = size * 4
    to = from + size - 1
until #members == 0
return busy(left, 1)
