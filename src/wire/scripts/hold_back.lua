-- SPDX-License-Identifier: MIT
-- KEYS key, mark  ARGV ms  ->  {left ms, 1 if several hold the lock, else 0}
--
-- Asked by a client that waits for an exclusive lock without a line. With
-- ARGV[1] > 0, if several hold the lock, nobody joins them for so many ms: the
-- mark becomes '+' and when that ends, in Unix time by the server's clock, see
-- hold_back_ends() in drop.lua. Else others, one after the other, could keep
-- the lock away from this client for ever. The mark of a line stays as it is.
-- One that a line has found here, and relies on, lasts as long as before.
-- Who may not do that is told all the same what is known.
-- include lock.lua
local key, mark, ms = KEYS[1], KEYS[2], tonumber(ARGV[1])
local left = redis.call('PTTL', key)
local several_hold = (tonumber(redis.pcall('ZCARD', key)) or 0) > 1
if several_hold and ms > 0 then
    redis.replicate_commands()
    local time = redis.pcall('TIME')
    local others = hold_back_ends(mark)
    local ends = time.err and 0 or
        ms_of(time) + ms
    if others and others < ends then
        local lasts = tonumber(redis.pcall('PTTL', mark)) or 0
        redis.pcall('SET', mark, '+' .. string.format('%.0f', ends), 'PX',
            math.max(ms, lasts))
    end
end
return {left, several_hold and 1 or 0}
