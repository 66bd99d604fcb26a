-- SPDX-License-Identifier: MIT
-- include lock.lua
-- include line.lua
-- Grants the lock to the waiters at the front of the line that fit, and tells
-- them. It removes the dead, and skips those that cannot be told now: they keep
-- their place. It stops at the first waiter that does not fit, or that this
-- version does not understand, so nobody passes it; and after MOST, because a
-- script keeps all others waiting: then the next one is told to ask, and goes
-- on from there. me: the member that asks, which is alive, and need not be
-- told.
--
-- Returns how many were granted the lock; whether that was one of them; the
-- member at which it stopped, if any; an error; and, at the end of the line,
-- whether some keep their place. Nothing in here raises an error. A token
-- leaves the line before it gets the lock: it is granted once.
local MOST = 128
local function serve(s, key, line, now, me)
    -- The bounds are strings at first, as in content().
    local granted, mine, from, to, size = 0, false, '0', '0', 1
    while true do
        local members = redis.pcall('ZRANGE', line, from, to, 'WITHSCORES')
        if members.err or #members == 0 then
            return granted, mine, nil, members.err and members, from ~= '0'
        end
        for i = 1, #members, 2 do
            local member, done = members[i], nil
            local token, client, lease, window, known = waiter_of(member)
            local is_me = member == me
            local alive = is_me or
                token and not is_dead(now, members[i + 1], window)
            local channel = not is_me and alive and channel_of(client, key)
            if channel and listeners(channel) == 0 then
                from = from + 1
            elseif alive and not (known and fits(s, token)) then
                return granted, mine, member
            elseif alive and granted == MOST then
                publish(channel or '-', '!' .. token)
                return granted, mine, member
            else
                done = redis.pcall('ZREM', line, member)
                if done ~= 1 then
                    return granted, mine, nil, done
                end
            end
            if done and alive then
                s, done = put(s, key, token, lease)
                if done then
                    return granted, mine, nil, done
                end
                granted, mine = granted + 1, mine or is_me
                if channel then
                    publish(channel, token)
                end
                -- Nobody fits beside an exclusive lock.
                if s == token then
                    return granted, mine
                end
            end
        end
        size = size * 4
        to = from + size - 1
    end
end
