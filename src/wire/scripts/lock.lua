-- SPDX-License-Identifier: MIT
-- The kinds of locks: what the key of a lock holds, whether a token may be
-- granted the lock beside that, and how it is granted, extended and taken away.
--
-- The key of an exclusive lock is a string, the token. Its most frequent steps
-- are written out in acquire.lua, fence.lua, takeover.lua and release.lua,
-- where a call of a function would be too expensive.
--
-- Of a lock with several holders it is a sorted set, see holders.lua. A token
-- that takes so many permits holds the lock beside others while all of them
-- take no more than any of them allows.
--
-- This is one subject in four files, because a script makes its functions anew
-- on each call: take.lua and release.lua first include only what most calls of
-- them need.
--
-- Invariant: the kind of a lock is read from the token, by kind() in grant.lua;
-- no caller chooses it. Only these files know what a state is, except that it
-- is false if the key is free, a string if an exclusive lock is held, and has
-- s.used, the permits that are held, if others may be granted the lock beside
-- its holders. nil is the state in which no token may be granted the lock.
-- include holders.lua
-- include grant.lua
-- include drop.lua
-- The state of a lock that several hold, with its permits counted. wrong: the
-- error if the key is no lock.
local function several_holders(key, left, wrong)
    local s, failure = uncounted(key, left)
    if s == nil then
        return nil, is_other_type(failure) and wrong or failure
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
    elseif is_other_type(seen) then
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
    if token and string.byte(token, 37) == 43 then
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
        if not is_other_type(seen) then
            return nil, left, seen
        end
        local s, wrong = several_holders(key, left, seen)
        return s, left, wrong
    elseif seen == '' and redis.call('EXISTS', key) == 0 then
        return false, -2
    end
    return seen, left
end
-- The token holds the lock: its lease becomes at least so long, and is never
-- shortened; one that never ends (-1) stays so. Returns how many ms it has
-- left; nil: the token does not hold the lock. It is written even if that
-- changes nothing, because a WAIT that follows says nothing without a write.
local function extend_if_held(s, key, token, lease, left)
    local ends = holds(s, key, token)
    if not ends then
        return nil
    elseif s ~= token then
        ends = math.max(ends, s.now + lease)
        s.ends = math.max(s.ends, ends)
        local ms = s.ends - s.now
        redis.call('PEXPIRE', key, ms)
        if redis.pcall('ZADD', key, ends, token) ~= 0 then
            -- The key must not outlast the leases: see uncounted().
            redis.pcall('PEXPIRE', key, s.left > 0 and s.left or ms)
            redis.call('ZADD', key, ends, token)
        end
        return ends - s.now
    elseif left < 0 then
        return left
    elseif left > lease + 0 then
        lease = string.format('%.0f', left)
    end
    return redis.call('PEXPIRE', key, lease) == 1 and lease + 0 or nil
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
