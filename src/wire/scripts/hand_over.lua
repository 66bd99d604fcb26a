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
local line, pace = beside .. 'l', beside .. 'g'
local gap = string.match(how or '', '^%?(%d+)$')
local time = redis.pcall('TIME')
local reply = time.err and 4
local now = not reply and tick_of(time)
-- Somebody may be left in line, and the mark has been deleted.
local left = false
-- A lock that is handed over again and again is left free for 100 ms in 7.5 s.
local function leaves_gap()
    return (gap or stands and redis.pcall('EXISTS', pace) == 0) and
        not redis.pcall('SET', pace, '1', 'PX', (gap or 100) + GAP_EVERY).err
end
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
        elseif alive and leaves_gap() then
            -- In a gap there is no mark, so that no release in it hands over.
            tell(client, key, '?' .. token)
            reply = 5
        elseif alive and not known then
            tell(client, key, '?' .. token)
            reply, left = 1, true
        elseif redis.pcall('ZREM', line, members[i]) ~= 1 then
            reply = 4
        elseif alive then
            -- It left the line before it gets the lock: it is granted once.
            if redis.pcall('SET', key, token, 'PX', lease).err then
                reply = 4
            else
                tell(client, key, token)
                reply = 2
                if not stands then
                    left = redis.pcall('EXISTS', line) ~= 0
                    -- Here begin the hand-overs that keep others away.
                    redis.pcall('SET', pace, '1', 'PX', GAP_EVERY, 'NX')
                end
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
