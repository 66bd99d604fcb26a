-- SPDX-License-Identifier: MIT
-- KEYS key  ARGV token, and maybe: its member in the line, or how to hand over
-- ('', '+', '?' or '-'); for a key with a hash tag, the mark  ->
-- enum release_reply
--
-- Compare and delete, and hand the lock over to the first in its line.
-- ARGV[2]: the token's member in the line, where it may be: then it leaves, if
-- it does not hold the lock; or '-': no hand-over; or '+': somebody is probably
-- in line, so that the hand-over can be cheaper, and the caller got the lock by
-- one, so that this may be a time for a gap; or '?' and a number: if there is a
-- line, nobody in it gets the lock for so many ms, in which programs that know
-- nothing of the line may take it. The replies: 0 the token is not there;
-- 1 removed; 2 handed over; 3 left the line; 4 removed, but this user, or a
-- server before 3.2, cannot hand over: the first in line finds out when it asks
-- next; 5 removed, and nobody in line gets it for a while.
--
-- The keys of the line are derived, not declared: a user who has no access to
-- them could not release at all. ARGV[3]: the mark's name, if the key has a
-- hash tag. To find that out here would take longer than the mark itself.
local key, token, how = KEYS[1], ARGV[1], ARGV[2] or ''
local mark = ARGV[3] or '{' .. key .. '}:nxl-w'
-- give_back() for an exclusive lock, written out until it is known that
-- somebody waits, and holds() for one that another token holds: neither must
-- pay for functions that it does not need.
local several = string.byte(token, 37) == 43
local s, gone, pause, wrong
if not several then
    s = redis.pcall('GETRANGE', key, '0', '511')
    if s == token and how ~= '+' then
        if how == '-' then
            return redis.call('DEL', key)
        end
        -- Before the first write, as in give_back().
        if redis.replicate_commands then
            redis.replicate_commands()
        end
        gone = redis.pcall('DEL', key, mark)
        if gone == 1 then
            return 1
        elseif gone ~= 2 then
            -- As in give_back(): 1 deleted key becomes the reply 4.
            return redis.call('DEL', key) * 4
        end
        s = false
    elseif s ~= token and not s.err and not string.find(how, ' ') then
        -- Only a member of the line has a blank in it.
        return 0
    end
end
-- include drop.lua
-- The same for one of several holders, before the other functions are defined.
if several then
    s = uncounted(key)
    if s and holds(s, key, token) then
        gone, s, pause = drop(s, key, token, how ~= '-' and mark or nil)
        if gone == 1 or how == '-' then
            return 1
        end
        how = pause and '?100' or how
    end
end
-- include hand_over.lua
if s and s.err and is_other_type(s) then
    -- This token does not hold it. The permits are not counted, because a user
    -- of exclusive locks may not do that.
    wrong, s = s, uncounted(key)
    wrong = s == nil and wrong
elseif s == nil or (s and s.err) then
    s, wrong = content(key, s)
end
if gone or holds(s, key, token) then
    return give_back(s, key, token, mark, how, gone, several)
elseif s and s.used and redis.call('ZREM', key, token) == 1 then
    -- Its lease was over. If the clock is set back, it must not come again.
    return 0
elseif not string.find(how, ' ') then
    return wrong or 0
end
local line = string.sub(mark, 1, -2) .. 'l'
local removed = redis.call('ZREM', line, how)
if removed == 1 and s and s.used then
    -- Those behind it may fit. Who may not count the permits has left all the
    -- same: the first of them finds out when it asks next.
    local time, known = redis.pcall('TIME')
    known, s = pcall(counted, s, key)
    if known and not time.err then
        serve(s, key, line, tick_of(time), nil)
    end
end
if removed == 1 and redis.pcall('EXISTS', line) == 0 then
    redis.pcall('DEL', mark)
end
if removed == 0 and wrong and not is_other_type(wrong) then
    -- It may hold the lock.
    return wrong
end
return removed == 1 and 3 or 0
