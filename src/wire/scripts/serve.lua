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
-- The next members of the line, which has kept so many of those before them. An
-- error, or none, is members itself.
local function next_waiters(key, line, now, me, kept, count)
    local members =
        redis.pcall('ZRANGE', line, kept, kept + count - 1, 'WITHSCORES')
    local waiters, channels = {err = members.err}, {}
    for i = 1, #members, 2 do
        local member = members[i]
        local token, client, lease, window, known = waiter_of(member)
        local is_me = member == me
        local alive = is_me or
            (token and not is_dead(now, members[i + 1], window))
        local channel = alive and not is_me and channel_of(client, key) or '-'
        -- A table that grows by one member at a time would cost twice as much.
        waiters[#waiters + 1] = {
            member = member, token = token, lease = lease, known = known,
            is_me = is_me, alive = alive, channel = channel, deaf = false
        }
        channels[#channels + 1] = channel
    end
    local heard = listeners(channels)
    for i = 1, #waiters do
        waiters[i].deaf = heard[waiters[i].channel] == 0
    end
    return waiters
end
local function serve(s, key, line, now, me)
    local granted, mine, kept, size = 0, false, 0, 1
    local name, k, l, head
    while true do
        local waiters = next_waiters(key, line, now, me, kept, size)
        if #waiters == 0 then
            return granted, mine, nil, waiters.err and waiters, kept > 0
        end
        local leave, enter, stop, more, alone, done = {}, {}, nil, nil, nil, nil
        for i = 1, #waiters do
            local w = waiters[i]
            name = nil
            if w.alive and w.known and not w.deaf then
                name, k, l, head = fits(s, w.token)
            end
            if w.deaf then
                kept = kept + 1
            elseif w.alive and not name then
                stop = w.member
            elseif w.alive and granted + #enter == MOST then
                stop = w.member
                more = w
            else
                leave[#leave + 1] = w.member
                if w.alive then
                    enter[#enter + 1] = w
                    s, done = add(s, w.token, w.lease, k, l, head)
                end
            end
            -- Nobody fits beside an exclusive lock.
            alone = w.alive and not w.deaf and s == w.token
            if stop or done or alone then
                break
            end
        end
        if not done and #leave > 0 then
            done = redis.pcall('ZREM', line, unpack(leave))
            done = done ~= #leave and done
        end
        if not done and #enter > 0 then
            done = grant(s, key, enter[1].lease)
        end
        if done then
            return granted, mine, nil, done
        end
        for i = 1, #enter do
            mine = mine or enter[i].is_me
            publish(enter[i].channel, enter[i].token)
        end
        if more then
            publish(more.channel, '!' .. more.token)
        end
        granted = granted + #enter
        if stop or alone then
            return granted, mine, stop
        end
        size = math.min(size * 4, MOST + 1 - granted)
    end
end
