-- SPDX-License-Identifier: MIT
-- Deletes the key, which holds the caller's token, and hands the lock over to
-- the first in its line. This is the end of a script or of a function, not a
-- function: a release that nobody waits for must not pay for one. It uses the
-- locals key, mark (the mark's name) and how, and returns 1, 2 or 4: see
-- release.lua. An error means that nothing was deleted.
if how == '-' then
    return redis.call('DEL', key)
end
local gone = redis.pcall('DEL', key, mark)
if gone == 1 then
    return 1
end
if gone ~= 2 then
    return redis.call('DEL', key) * 4
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
-- The bounds are strings at first, as in release.lua.
local now, from, to, size, members = tick_of(time), '0', '1', 2, nil
repeat
    members = redis.pcall('ZRANGE', line, from, to, 'WITHSCORES')
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
        elseif alive and how == '?' then
            if channel ~= '-' then
                redis.pcall('PUBLISH', channel, '?' .. token)
            end
            redis.pcall('SET', mark, '1', 'PX', '15000')
            return 1
        elseif redis.pcall('ZREM', line, members[i]) ~= 1 then
            return 4
        elseif alive then
            -- It left the line before it gets the lock: it is granted once.
            if redis.pcall('SET', key, token, 'PX', lease).err then
                return 4
            end
            if channel ~= '-' then
                redis.pcall('PUBLISH', channel, token)
            end
            if members[i + 2] or redis.pcall('EXISTS', line) == 1 then
                redis.pcall('SET', mark, '1', 'PX', '15000')
            end
            return 2
        end
    end
    size = size * 4
    to = from + size - 1
until #members == 0
if from ~= '0' then
    redis.pcall('SET', mark, '1', 'PX', '15000')
end
return 1
