-- SPDX-License-Identifier: MIT
-- What the key of a lock with several holders contains, and who they are.
--
-- It is a sorted set. A member is the token of a holder, and its score the end
-- of its lease by the server's clock, in ms. The last member is the head. It is
-- 'nxl=WEIGHT/PERMITS' if all holders ask for that, so that they need only be
-- counted, and else 'nxl=*'; its score is FAR, plus the time when the first of
-- them was granted the lock. Behind that the head has '#' and their fencing
-- token, if one of them has drawn it: see shared_fence.lua. A sorted set
-- without a head is no lock. The key expires with the last lease. A lease that
-- is over counts as gone, even if its member is still there.
local FAR = 17592186044416
-- Does the error say that the key holds another type, or a sorted set that is
-- no lock?
local function is_other_type(failure)
    return string.find(failure.err, 'wrong kind')
end
-- The server's clock in ms, and the same as text: to format a number takes
-- longer than a simple command.
local function ms_of(time)
    local text = time[1] .. string.sub('00000' .. time[2], -6, -4)
    return text + 0, text
end
-- The state of a sorted set, whose permits are not counted yet: s.used is 0. Or
-- false: the key is free, or has no holder. Or nil and an error: it is another
-- type, or no lock. left: in how many ms it expires, if that is known.
-- The leases are counted by the clock by which the key expires: that of the
-- server to which the key was moved may differ from the one that wrote them.
-- s.last is the holder whose lease ends last.
local function uncounted(key, left)
    local last = redis.pcall('ZRANGE', key, '-2', '-1', 'WITHSCORES')
    if last.err then
        return nil, last
    elseif #last == 0 then
        return false
    end
    local head, number =
        string.match(last[#last - 1], '^(nxl=[^#]*)(#?%d*)$')
    if not head or last[#last] + 0 < FAR then
        return nil, {err = 'wrong kind of sorted set'}
    elseif #last == 2 then
        return false
    end
    left = left or redis.call('PTTL', key)
    if redis.replicate_commands then
        redis.replicate_commands()
    end
    local ends, now, text = last[2] + 0, ms_of(redis.call('TIME'))
    if left >= 0 and math.abs(ends - now - left) > 50 then
        now, text = ends - left, false
    end
    return {
        head = head, number = number, since = last[4] - FAR, last = last[1],
        ends = ends, left = left, used = 0, most = math.huge,
        now = now, text = text
    }
end
-- In the last 0.1 s of each 30.1 s nobody joins the holders. Else, one after
-- the other, they could keep programs that poll away for ever.
local function is_pause(s)
    return (s.now - s.since) % 30100 >= 30000
end
-- Does the token hold the lock? Of one of several holders it returns when its
-- lease ends. s: the state as it was read.
local function holds(s, key, token)
    if not s or not s.used then
        return s == token
    end
    local ends = token == s.last and s.ends or
        redis.call('ZSCORE', key, token)
    ends = ends and ends + 0
    return ends and ends > s.now and ends
end
