-- SPDX-License-Identifier: MIT
-- Deletes the key, which holds the caller's token, or hands the lock over to
-- the first in its line. This is the end of a script or of a function, not a
-- function: a release that nobody waits for must not pay for one. It uses the
-- locals key, mark (the mark's name) and how, and returns 1, 2, 4 or 5: see
-- release.lua. An error means that the key was not deleted.
if how == '-' then
    return redis.call('DEL', key)
end
-- With '+' the key stands until the line has been looked at, and then the next
-- token replaces this one; the mark is left to whoever empties the line. Not
-- before 3.2, where nothing may be written after TIME.
local stands = how == '+' and redis.replicate_commands
if stands then
    redis.replicate_commands()
else
    local gone = redis.pcall('DEL', key, mark)
    if gone == 1 then
        return 1
    end
    if gone ~= 2 then
        return redis.call('DEL', key) * 4
    end
end
-- include line.lua
local beside = string.sub(mark, 1, -2)
local line, gap = beside .. 'l', string.match(how or '', '^%?(%d+)$')
local time = redis.pcall('TIME')
local reply = time.err and 4
local now = not reply and tick_of(time)
-- Somebody may be left in line, and the mark has been deleted.
local left = false
-- The bounds are strings at first, as in release.lua.
local from, to, size = '0', '0', 1
-- Nothing in here raises an error.
while not reply do
    local members = redis.pcall('ZRANGE', line, from, to, 'WITHSCORES')
    if members.err then
        reply = 4
    elseif #members == 0 then
        reply, left = 1, from ~= '0'
    end
    for i = 1, #members, 2 do
        local token, client, lease, window, known = waiter_of(members[i])
        local alive = token and not is_dead(now, members[i + 1], window)
        if alive and listeners(client, key) == 0 then
            -- It cannot be told now: it keeps its place.
            from = from + 1
        elseif alive and (gap or not known) then
            -- In a gap there is no mark, so that no release in it hands over.
            left = not gap or redis.pcall('SET', beside .. 'g', '1', 'PX', gap)
                .err
            tell(client, key, '?' .. token)
            reply = left and 1 or 5
        elseif redis.pcall('ZREM', line, members[i]) ~= 1 then
            reply = 4
        elseif alive then
            -- It left the line before it gets the lock: it is granted once.
            if redis.pcall('SET', key, token, 'PX', lease).err then
                reply = 4
            else
                tell(client, key, token)
                reply = 2
                left = not stands and redis.pcall('EXISTS', line) ~= 0
            end
        end
        if reply then
            break
        end
    end
    size = size * 4
    to = from + size - 1
end
if stands and reply ~= 2 and not tonumber(redis.pcall('DEL', key, mark)) then
    return redis.call('DEL', key) * 4
end
if left then
    redis.pcall('SET', mark, '1', 'PX', '15000')
end
return reply
