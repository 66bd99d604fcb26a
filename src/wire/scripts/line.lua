-- SPDX-License-Identifier: MIT
-- The line of a lock is a sorted set. A member is "token channel lease window".
-- Its score is its ticket, times 2^22, plus the time of its last sign of life,
-- modulo 2^22, in ticks of 1/32 s.
local function tick_of(time)
    return time[1] * 32 + math.floor(time[2] / 31250)
end
-- A member that has been silent for longer than its window is dead.
local function is_dead(now, score, window)
    return (now - score) % 4194304 > window + 0
end
-- How many listen to the channel; -1 if that cannot be known.
local function listeners(channel)
    local seen = channel == '-' or redis.pcall('PUBSUB', 'NUMSUB', channel)
    return (seen == true or seen.err) and -1 or seen[2] + 0
end
