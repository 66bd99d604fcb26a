-- SPDX-License-Identifier: MIT
-- The line of a lock is a sorted set. A member is "token client lease window",
-- and may have more behind that, which a later version added. Its score is its
-- ticket, times 2^22, plus the time of its last sign of life, modulo 2^22, in
-- ticks of 1/32 s.
-- The key {lock}:nxl-g makes gaps: for a while the lock is left to programs
-- that know nothing of the line. It lasts GAP_EVERY ms longer than the gap, and
-- while it exists no release has to begin the next one. No gap is longer than
-- GAP_MAX: a key that lasts longer says that the server's clock was set back,
-- which must not keep the lock from the line for so long.
local GAP_EVERY = 7400
local GAP_MAX = 1000
local function tick_of(time)
    return time[1] * 32 + math.floor(time[2] / 31250)
end
-- The parts of a member, and whether it has no more of them: else this version
-- may not grant the lock to it. nil: no version made this member. A client has
-- no ':', which ends it in the channel: with one, a member of the line of "a"
-- would have its message sent for "b:a".
local function waiter_of(member)
    local token, client, lease, window, more =
        string.match(member, '^(%S+) ([^%s:]+) (%d+) (%d+)(.*)$')
    return token, client, lease, window, more == ''
end
-- A member that has been silent for longer than its window is dead. A sign of
-- life in the future counts as one of now: see patience in line_wait.lua,
-- or the server's clock was set back.
local function is_dead(now, score, window)
    local silent = (now - score) % 4194304
    return silent > window + 0 and silent < 2097152
end
-- The channel on which the client hears of this lock, and of no other: see
-- channel_name() in model/companion.c. '-': the client cannot be told.
local function channel_of(client, key)
    if client == '-' then
        return client
    elseif string.find(key, '[%c %%]') then
        key = string.gsub(key, '[%c %%]', function(byte)
            return string.format('%%%02X', string.byte(byte))
        end)
    end
    return 'nxl:' .. client .. ':' .. key
end
-- How many listen to each of the channels; -1: that is not known. '-' is none.
local function listeners(channels)
    local asked, heard = {}, {['-'] = -1}
    for i = 1, #channels do
        local channel = channels[i]
        if not heard[channel] then
            heard[channel] = -1
            asked[#asked + 1] = channel
        end
    end
    local seen = #asked > 0 and
        redis.pcall('PUBSUB', 'NUMSUB', unpack(asked)) or {}
    for i = 1, #seen, 2 do
        heard[seen[i]] = seen[i + 1] + 0
    end
    return heard
end
-- Of one of them; -1 if that is not known.
local function hears(channel)
    return listeners({channel})[channel]
end
-- What is published to a waiter (lock/line_messages.c takes it):
--   TOKEN   the lock was granted to this token
--   ?TOKEN  this token is the first in line: ask soon, and often
--   !TOKEN  there is more to grant: this token asks at once. Not all that
--           listen to the channel: a client may have a thousand waiters, and
--           most of them are granted the lock by what the first one asks.
local function publish(channel, text)
    if channel ~= '-' then
        redis.pcall('PUBLISH', channel, text)
    end
end
