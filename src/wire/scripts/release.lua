-- SPDX-License-Identifier: MIT
-- Compare and delete, and hand the lock over to the first in its line. More
-- bytes are read than a token can have, so that a longer value never matches.
-- The bounds are strings because Lua would format numbers on each call, which
-- takes as long as the comparison.
-- ARGV[2]: the token's member in the line, where it may be: then it leaves, if
-- it does not hold the lock; or '-': no hand-over; or '?': none, but the first
-- in line is told that it may ask soon. The replies: 0 the token is not there;
-- 1 removed; 2 handed over; 3 left the line; 4 removed, but this user (or this
-- old server) cannot hand over: the first in line finds out when it asks next.
--
-- The keys of the line are derived, not declared: a user who has no access to
-- them could not release at all. ARGV[3]: the mark's name, if the key has a
-- hash tag. To find that out here would take longer than the mark itself.
local mark = ARGV[3] or '{' .. KEYS[1] .. '}:nxl-w'
if redis.call('GETRANGE', KEYS[1], '0', '511') ~= ARGV[1] then
    if not string.find(ARGV[2] or '', ' ') then
        return 0
    end
    local line = string.sub(mark, 1, -2) .. 'l'
    local left = redis.call('ZREM', line, ARGV[2])
    if left == 1 and redis.pcall('EXISTS', line) == 0 then
        redis.pcall('DEL', mark)
    end
    return left * 3
end
if ARGV[2] == '-' then
    return redis.call('DEL', KEYS[1])
end
local gone = redis.pcall('DEL', KEYS[1], mark)
if gone == 1 then
    return 1
end
if gone ~= 2 then
    return redis.call('DEL', KEYS[1]) * 4
end
-- The key has been deleted: nothing may raise an error from here on.
if redis.replicate_commands then
    redis.replicate_commands()
end
local time = redis.pcall('TIME')
if time.err then
    return 4
end
-- include line.lua
local line = string.sub(mark, 1, -2) .. 'l'
local now, from, size, members = tick_of(time), 0, 2, nil
repeat
    members = redis.pcall('ZRANGE', line, from, from + size - 1, 'WITHSCORES')
    if members.err then
        return 4
    end
    for i = 1, #members, 2 do
        local token, channel, lease, window =
            string.match(members[i], '^(%S+) (%S+) (%d+) (%d+)$')
        local alive = token and not is_dead(now, members[i + 1], window)
        if alive and listeners(channel) == 0 then
            -- It cannot be told now: it keeps its place.
            from = from + 1
        elseif alive and ARGV[2] == '?' then
            if channel ~= '-' then
                redis.pcall('PUBLISH', channel, '?' .. token)
            end
            redis.pcall('SET', mark, '1', 'PX', '15000')
            return 1
        elseif redis.pcall('ZREM', line, members[i]) ~= 1 then
            return 4
        elseif alive then
            -- It left the line before it gets the lock: it is granted once.
            if redis.pcall('SET', KEYS[1], token, 'PX', lease).err then
                return 4
            end
            if channel ~= '-' then
                redis.pcall('PUBLISH', channel, token)
            end
            if redis.pcall('EXISTS', line) == 1 then
                redis.pcall('SET', mark, '1', 'PX', '15000')
            end
            return 2
        end
    end
    size = size * 4
until #members == 0
if from > 0 then
    redis.pcall('SET', mark, '1', 'PX', '15000')
end
return 1
