-- SPDX-License-Identifier: MIT
-- The kinds of locks: what the key of a lock holds, whether a token may be
-- granted the lock beside that, and how it is granted, extended and taken away.
-- There is one kind, the exclusive lock, whose key is a string, the token. Its
-- most frequent steps are written out in acquire.lua, fence.lua, takeover.lua
-- and release.lua, where a call of a function would be too expensive.
--
-- Invariant: the kind of a lock is read from the token, here; no caller chooses
-- it. Only this file knows what a state is, except that it is false if the key
-- is free, and a string if an exclusive lock is held. nil is the state in which
-- no token may be granted the lock.

-- The kind that a token asks for; nil: it is one of a later version. A token is
-- a UUID of 36 bytes, and may have '@' and a label behind it.
local function kind(token)
    local mark = string.byte(token, 37)
    return (not mark or mark == 64) and 'exclusive' or nil
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
        return nil, seen
    end
    -- Raises the error.
    return redis.call('GETRANGE', key, '0', '511')
end
-- The state of the key, and how many ms it has left: -1 without a TTL, -2 if it
-- is free. Third, an error as of content(), or any other. EXISTS is for old
-- servers: before 2.8 PTTL is -1 without a key, and before 3.2 a key may expire
-- between two commands of a script.
local function look(key)
    local left = redis.call('PTTL', key)
    if left == -2 then
        return false, left
    end
    local seen = redis.pcall('GETRANGE', key, '0', '511')
    if seen.err then
        return nil, left, seen
    elseif seen == '' and redis.call('EXISTS', key) == 0 then
        return false, -2
    end
    return seen, left
end
-- May the token be granted the lock?
local function fits(s, token)
    return s == false and kind(token)
end
-- Grants the lock to a token that fits, and returns the new state; or nil and
-- an error. If the state is false, whatever the key still holds is replaced, as
-- in give_back().
local function put(s, key, token, lease)
    local done = redis.pcall('SET', key, token, 'PX', lease)
    if done.err then
        return nil, done
    end
    return token
end
-- Does the token hold the lock?
local function holds(s, key, token)
    return s == token
end
-- The token holds the lock: its lease becomes at least so long, and is never
-- shortened; one that never ends (-1) stays so. Returns how many ms it has
-- left; nil: the token does not hold the lock. It is written even if that
-- changes nothing, because a WAIT that follows says nothing without a write.
local function held(s, key, token, lease, left)
    if s ~= token then
        return nil
    elseif left < 0 then
        return left
    elseif left > lease + 0 then
        lease = string.format('%.0f', left)
    end
    return redis.call('PEXPIRE', key, lease) == 1 and lease + 0 or nil
end
-- The lease of a token that holds the lock ends in so many ms, even if that is
-- earlier than before. Returns 1, or 0: it has ended.
local function set_lease(s, key, token, ms)
    return redis.call('PEXPIRE', key, ms)
end
-- Takes the lock from a token that holds it. With a mark it deletes that too,
-- and raises no error. Returns the number of keys that it deleted, or an error;
-- and the new state.
local function drop(s, key, token, mark)
    if mark then
        return redis.pcall('DEL', key, mark), false
    end
    return redis.call('DEL', key), false
end
