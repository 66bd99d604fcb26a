-- SPDX-License-Identifier: MIT
-- How a lock is taken away from its holder.
-- include holders.lua
-- If the mark does not say that there may be a line: until when nobody joins
-- the holders of the lock, in Unix time in ms, or 0. See hold_back.lua.
local function hold_back_ends(mark)
    local seen = redis.pcall('GETRANGE', mark, '0', '31')
    return not seen.err and (seen == '' and 0 or
        tonumber(string.match(seen, '^%+(%d+)$')))
end
-- Takes the lock from a token that holds it. With a mark it deletes that too,
-- and raises no error once the token is gone. Returns 1, plus 1 if it deleted
-- the mark, or an error; the new state, which is the old one if others still
-- hold the lock; and whether the lock is to be left to programs outside the
-- line now.
local function drop(s, key, token, mark)
    if s and s.used then
        -- Of the leases that are left, the last one ends at s.ends.
        local is_last = token == s.last
        if is_last then
            local before =
                redis.call('ZRANGE', key, '-3', '-3', 'WITHSCORES')[2]
            s.ends = (before or 0) + 0
        end
        local some_left = s.ends > s.now
        if some_left then
            redis.call('ZREM', key, token)
        end
        -- Nothing raises an error once the token is gone. A mark that holds
        -- others back stays for the client that has set it.
        local ends = mark and hold_back_ends(mark)
        if ends == 0 or (ends and redis.pcall('EXISTS',
            string.sub(mark, 1, -2) .. 'l') == 0) then
            mark = nil
        end
        if some_left then
            if is_last then
                redis.pcall('PEXPIRE', key, s.ends - s.now)
            end
            local waits = mark and tonumber(redis.pcall('DEL', mark)) == 1
            return waits and 2 or 1, s
        end
        local gone = mark and tonumber(redis.pcall('DEL', key, mark))
        gone = gone or tonumber(redis.pcall('DEL', key))
        if not gone then
            redis.call('ZREM', key, token)
            redis.pcall('PEXPIRE', key, '0')
        end
        return gone or 1, false, is_pause(s)
    elseif mark then
        return redis.pcall('DEL', key, mark), false
    end
    return redis.call('DEL', key), false
end
