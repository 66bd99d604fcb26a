-- SPDX-License-Identifier: MIT
-- The kinds of locks: what the key of a lock holds, whether a token may be
-- granted the lock beside that, and how it is granted, extended and taken away.
--
-- The key of an exclusive lock is a string, the token. Its most frequent steps
-- are written out in acquire.lua, fence.lua, takeover.lua and release.lua,
-- where a call of a function would be too expensive.
--
-- Of a lock with several holders it is a sorted set. A member is the token of a
-- holder, and its score the end of its lease by the server's clock, in ms. The
-- last member is the head. It is 'nxl=WEIGHT/PERMITS' if all holders ask for
-- that, so that they need only be counted, and else 'nxl=*'; its score is FAR,
-- plus the time when the first of them was granted the lock. Behind that the
-- head has '#' and their fencing token, if one of them has drawn it: see
-- shared_fence.lua. A sorted set without a head is no lock. The key expires
-- with the last lease. A token that takes so many permits holds the lock beside
-- others while all of them take no more than any of them allows.
--
-- Invariant: the kind of a lock is read from the token, here; no caller chooses
-- it. Only this file knows what a state is, except that it is false if the key
-- is free, a string if an exclusive lock is held, and has s.used, the permits
-- that are held, if others may be granted the lock beside its holders. nil is
-- the state in which no token may be granted the lock. A lease that is over
-- counts as gone, even if its member is still there.
local FAR = 17592186044416

-- The kind that a token asks for; nil: it is one of a later version. A token is
-- a UUID of 36 bytes, and may have '+WEIGHT/PERMITS' behind it, and then '@'
-- and a label. 'shared' comes with the weight, the permits, of which 0 is no
-- limit, and the head of their kind.
local function kind(token)
    local mark = string.byte(token, 37)
    if not mark or mark == 64 then
        return 'exclusive'
    end
    local weight, permits, more =
        string.match(token, '^%+([1-9]%d*)/(%d+)(.?)', 37)
    if not weight or (more ~= '' and more ~= '@') then
        return nil
    end
    local k, l = weight + 0, permits + 0
    if permits == '0' and k == 1 then
        return 'shared', k, math.huge, 'nxl=1/0'
    elseif string.byte(permits) ~= 48 and l > 1 and k <= l and
        l <= 2147483647 then
        return 'shared', k, l, 'nxl=' .. weight .. '/' .. permits
    end
end
-- The server's clock in ms.
local function ms_of(time)
    return time[1] * 1000 + math.floor(time[2] / 1000)
end
-- s.now as an argument of a command, which Lua would take longer to format.
local function now_of(s)
    s.text = s.text or
        string.format('%d%06d', s.now / 1000000, s.now % 1000000)
    return s.text
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
    local s = {
        head = head, number = number, since = last[4] - FAR, last = last[1],
        ends = last[2] + 0, left = left, used = 0,
        now = ms_of(redis.call('TIME'))
    }
    if left >= 0 and math.abs(s.ends - s.now - left) > 50 then
        s.now = s.ends - left
    end
    return s
end
-- In the last 0.1 s of each 30.1 s nobody joins the holders. Else, one after
-- the other, they could keep programs that poll away for ever.
local function is_pause(s)
    return (s.now - s.since) % 30100 >= 30000
end
-- Counts the permits that are held. Returns the state, or false: none is held.
local function counted(s, key)
    s.most = math.huge
    local count =
        redis.call('ZCOUNT', key, '(' .. now_of(s), '(17592186044416')
    local k, l = string.match(s.head, '^nxl=(%d+)/(%d+)$')
    if k then
        s.used = k * count
        s.most = l == '0' and math.huge or l + 0
    else
        -- They are the last ones before the head. Of those that ask for the
        -- same only one is parsed: that takes as long as all the rest.
        local all, weights = redis.call('ZRANGE', key, -1 - count, '-2'), {}
        for i = 1, #all do
            local asks = string.match(all[i], '^[^@]*', 37)
            if not weights[asks] then
                local _, weight, permits = kind(all[i])
                weights[asks] = weight or 1
                s.most = math.min(s.most, permits or 1)
            end
            s.used = s.used + weights[asks]
        end
    end
    s.pause = is_pause(s)
    return s.used > 0 and s
end
-- The same, with its permits counted. wrong: the error if the key is no lock.
local function several_holders(key, left, wrong)
    local s, failure = uncounted(key, left)
    if s == nil then
        return nil, string.find(failure.err, 'wrong kind') and wrong or failure
    end
    return s and counted(s, key)
end
-- The state of a key that is not free. Or nil and an error: the key holds
-- something that is no lock. More bytes are read than a token can have, so that
-- a longer value is never taken for one; and never all of a value, which may
-- have half a gigabyte. The bounds are strings because Lua would format numbers
-- on each call, which takes as long as the comparison. seen: what that command
-- has replied, if it was sent already.
local function content(key, seen)
    seen = seen or redis.pcall('GETRANGE', key, '0', '511')
    if not seen.err then
        return seen
    elseif string.find(seen.err, 'wrong kind') then
        return several_holders(key, redis.call('PTTL', key), seen)
    end
    -- Raises the error.
    return redis.call('GETRANGE', key, '0', '511')
end
-- The state of the key, and how many ms it has left: -1 without a TTL, -2 if it
-- is free. Third, an error as of content(), or any other. EXISTS is for old
-- servers: before 2.8 PTTL is -1 without a key, and before 3.2 a key may expire
-- between two commands of a script. token: the one that is to hold the lock. If
-- it would be one of several holders, they are looked at first, because an
-- error of GETRANGE takes the server as long as three other commands.
local function look(key, token)
    if string.byte(token, 37) == 43 then
        local s = uncounted(key)
        if s ~= nil then
            return s and counted(s, key), s and s.left or -2
        end
    end
    local left = redis.call('PTTL', key)
    if left == -2 then
        return false, left
    end
    local seen = redis.pcall('GETRANGE', key, '0', '511')
    if seen.err then
        if not string.find(seen.err, 'wrong kind') then
            return nil, left, seen
        end
        local s, wrong = several_holders(key, left, seen)
        return s, left, wrong
    elseif seen == '' and redis.call('EXISTS', key) == 0 then
        return false, -2
    end
    return seen, left
end
-- May the token be granted the lock?
local function fits(s, token)
    if s == false then
        return kind(token)
    elseif not s or not s.used or s.pause then
        return nil
    end
    local _, k, l = kind(token)
    return k and s.used + k <= math.min(s.most, l)
end
-- Does the token hold the lock? Of one of several holders it returns when its
-- lease ends.
local function holds(s, key, token)
    if not s or not s.used then
        return s == token
    end
    local ends = tonumber(redis.call('ZSCORE', key, token))
    return ends and ends > s.now and ends
end
-- The token holds the lock: its lease becomes at least so long, and is never
-- shortened; one that never ends (-1) stays so. Returns how many ms it has
-- left; nil: the token does not hold the lock. It is written even if that
-- changes nothing, because a WAIT that follows says nothing without a write.
local function extend_if_held(s, key, token, lease, left)
    if s ~= token then
        local ends = s and s.used and tonumber(redis.call('ZSCORE', key, token))
        if not ends or ends <= s.now then
            return nil
        end
        ends = math.max(ends, s.now + lease)
        s.ends = math.max(s.ends, ends)
        redis.call('PEXPIRE', key, s.ends - s.now)
        redis.call('ZADD', key, ends, token)
        return ends - s.now
    elseif left < 0 then
        return left
    elseif left > lease + 0 then
        lease = string.format('%.0f', left)
    end
    return redis.call('PEXPIRE', key, lease) == 1 and lease + 0 or nil
end
-- Adds a token that fits to this state, which grant() then writes: to many
-- tokens at once, if several may hold the lock. Returns the new state; or nil
-- and an error.
local function add(s, token, lease)
    if string.byte(token, 37) ~= 43 then
        return token
    end
    local _, k, l, head = kind(token)
    if not s then
        local time = redis.pcall('TIME')
        if time.err then
            return nil, time
        end
        local now = ms_of(time)
        s = {
            head = head, number = '', since = now, now = now, ends = 0,
            lasts = 0, used = 0, most = math.huge,
            new = {FAR + now, head}
        }
    elseif not s.new then
        s.lasts, s.new = s.ends, {}
    end
    local new = s.new
    if s.head ~= head and s.head ~= 'nxl=*' then
        local at = s.lasts == 0 and 0 or #new
        s.old = s.lasts ~= 0 and s.head .. s.number
        s.head = 'nxl=*'
        new[at + 1], new[at + 2] = FAR + s.since, s.head .. s.number
    end
    new[#new + 1], new[#new + 2] = s.now + lease, token
    s.ends = math.max(s.ends, s.now + lease)
    s.used, s.most = s.used + k, math.min(s.most, l)
    return s
end
-- Grants the lock to the tokens that were added. Returns an error, if there is
-- one: it has been granted to none. If the lock was free, whatever the key
-- still holds is replaced, as in give_back(). lease: of an exclusive lock.
local function grant(s, key, lease)
    if not s.used then
        local done = redis.pcall('SET', key, s, 'PX', lease)
        return done.err and done
    end
    local new, done = s.new, nil
    s.new = false
    -- Who may not remove members must not add any.
    if s.lasts == 0 then
        done = redis.pcall('DEL', key)
    else
        done = redis.pcall('ZREMRANGEBYSCORE', key, '-inf', now_of(s))
        if s.old and tonumber(done) then
            done = redis.pcall('ZREM', key, 'nxl=')
        end
    end
    -- Before there is a member: a key that cannot expire must not be made.
    local ms = s.ends - s.now
    local lasts = tonumber(done) and redis.pcall('PEXPIRE', key, ms) or done
    if not tonumber(lasts) then
        return lasts
    end
    done = redis.pcall('ZADD', key, unpack(new))
    if not tonumber(done) then
        redis.pcall('PEXPIRE', key, math.max(s.lasts - s.now, 1))
        return done
    end
    if s.old then
        redis.pcall('ZREM', key, s.old)
        s.old = false
    end
    if lasts == 0 then
        redis.pcall('PEXPIRE', key, ms)
    end
end
-- Grants the lock to a token that fits. Returns the new state; or nil and an
-- error.
local function put(s, key, token, lease)
    local refused
    s, refused = add(s, token, lease)
    refused = refused or grant(s, key, lease)
    if refused then
        return nil, refused
    end
    return s
end
-- The key ends with the last lease. Returns whether there is one.
local function ends_with_last(s, key)
    local last = redis.call('ZRANGE', key, '-2', '-1', 'WITHSCORES')
    s.ends = last[4] and last[2] + 0 or 0
    return s.ends > s.now and
        redis.call('PEXPIRE', key, s.ends - s.now) == 1
end
-- The lease of a token that holds the lock ends in so many ms, even if that is
-- earlier than before. Returns 1, or 0: it has ended.
local function set_lease(s, key, token, ms)
    if s == token then
        return redis.call('PEXPIRE', key, ms)
    end
    redis.call('ZADD', key, s.now + ms, token)
    return ends_with_last(s, key) and 1 or 0
end
-- If the mark does not say that there may be a line: until when nobody joins
-- the holders of the lock, in Unix time in ms, or 0. See hold_back.lua.
local function hold_back_ends(mark)
    local seen = redis.pcall('GETRANGE', mark, '0', '31')
    return not seen.err and (seen == '' and 0 or
        tonumber(string.match(seen, '^%+(%d+)$')))
end
-- Takes the lock from a token that holds it. With a mark it deletes that too,
-- and raises no error once the token is gone. Returns 1, plus 1 if it deleted
-- the mark, or an error; the new state; and whether the lock is to be left to
-- programs outside the line now.
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
            return waits and 2 or 1, waits and content(key)
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
