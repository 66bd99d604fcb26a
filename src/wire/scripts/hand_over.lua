-- SPDX-License-Identifier: MIT
-- include serve.lua
-- If there is a line, leaves the lock free for so many ms, for programs that
-- know nothing of it: the first in line is told, and is not granted the lock.
-- In a gap there is no mark, so that no release in it hands over.
local function leaves_gap(key, line, gap_key, now, ms)
    -- With the state nil no token fits, so this serves nobody: it only finds
    -- the first that is alive, and removes the dead before it.
    local _, _, stop = serve(nil, key, line, now, nil)
    ms = math.min(ms, GAP_MAX) + GAP_EVERY
    if not stop or redis.pcall('SET', gap_key, '1', 'PX', ms).err then
        return false
    end
    local token, client = waiter_of(stop)
    publish(channel_of(client, key), '?' .. token)
    return true
end
-- Hands the lock, which has this state, over to the first in its line. how:
--   ''   nothing is known of a line
--   '+'  somebody is probably in line, and this token got the lock in line
--   '?N' nobody in line gets it for N ms, if there is a line
--   '-'  do not hand over (only give_back() takes this)
-- Any other text, a member of the line, is as ''. Returns 1 removed, 2 handed
-- over, 4 removed, cannot hand over, 5 left to programs outside the line, as
-- release.lua does; and whether somebody may be left in line
-- while the mark has been deleted. stands: the key and the mark have not been.
-- shared: several held the lock. Raises no error.
local function hand_over(s, key, mark, how, stands, shared)
    local beside, time = string.sub(mark, 1, -2), redis.pcall('TIME')
    if time.err then
        return 4, false
    end
    local line, gap_key, now = beside .. 'l', beside .. 'g', tick_of(time)
    local gap = not (s and s.used) and string.match(how, '^%?(%d+)$')
    if how == '+' and not (s and s.used) then
        -- A lock that is handed over again and again is left free for 100 ms in
        -- 7.5 s. In a gap no lock is handed over; so if this looks like one,
        -- the server's clock was set back, and it is time for the next. The
        -- last one of several holders begins it too: where readers and writers
        -- take turns, none of the writers may ever find that it is time.
        local gap_left = tonumber(redis.pcall('PTTL', gap_key))
        gap = gap_left and (gap_left < 0 or gap_left > GAP_EVERY) and 100
    end
    if gap and leaves_gap(key, line, gap_key, now, gap) then
        return 5, false
    end
    local granted, _, stop, failure, some_stay = serve(s, key, line, now, nil)
    if granted > 0 and stands then
        return 2, false
    elseif granted > 0 then
        -- Here begin the hand-overs that keep others away. Not if several held
        -- the lock: one of them may have joined them in the middle of these.
        local some_wait = redis.pcall('EXISTS', line) ~= 0
        if not shared then
            redis.pcall('SET', gap_key, '1', 'PX', GAP_EVERY, 'NX')
        end
        return 2, some_wait
    elseif failure then
        return 4, false
    elseif not stop then
        return 1, some_stay
    end
    local token, client, _, _, known = waiter_of(stop)
    if not (known and kind(token)) then
        -- It asks soon, and knows itself whether it may have the lock.
        publish(channel_of(client, key), '?' .. token)
    end
    return 1, true
end
-- Takes the lock from a token that holds it, and hands it over. gone, if given:
-- drop() has been done, and that was its result; shared: of several holders.
-- Returns 1, 2, 4 or 5: see release.lua. An error means that the token still
-- holds the lock.
local function give_back(s, key, token, mark, how, gone, shared)
    if how == '-' then
        gone = drop(s, key, token)
        return gone
    end
    -- From 3.2 to 4.0 a hand-over may write after TIME only if this was called
    -- before the first write; before 3.2 it never may.
    if redis.replicate_commands then
        redis.replicate_commands()
    end
    local reply, some_wait, pause
    shared = shared or (s and s.used)
    -- With '+' the key stands until the line has been looked at, and then the
    -- next token replaces this one; the mark is left to whoever empties the
    -- line. Not before 3.2, see above.
    local stands = how == '+' and s == token and redis.replicate_commands
    if stands then
        reply, some_wait = hand_over(false, key, mark, how, true)
        if reply == 2 then
            return 2
        end
    end
    if not gone then
        gone, s, pause = drop(s, key, token, mark)
        how = pause and '?100' or how
    end
    if gone == 2 and s then
        -- Others still hold it. The rest of the state is as it was. Who may not
        -- count them cannot hand over, but has released it.
        local known
        known, s = pcall(counted, s, key)
        if not known then
            return 4
        end
    end
    if not tonumber(gone) then
        -- It could not delete the mark: deletes the key alone. 1 deleted key
        -- becomes the reply 4, and 0 the reply 0.
        return drop(s, key, token) * 4
    elseif gone == 1 and not stands then
        return 1
    elseif not stands then
        reply, some_wait = hand_over(s, key, mark, how, false, shared)
    end
    if some_wait then
        redis.pcall('SET', mark, '1', 'PX', '15000')
    end
    return reply
end
