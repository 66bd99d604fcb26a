-- SPDX-License-Identifier: MIT
-- KEYS key, record, counter  ARGV token, ttl, 'halt', 'retry' or 'look', keep,
-- '-' or '=fingerprint', the counter's shortest ttl, how to hand over, mark  ->
-- {enum once_found, number, line, result}
--
-- Acquires the lock and records that the work has begun; or only looks whether
-- that could be done (ARGV[3] is 'look'). The replies, {code, number, line of
-- the record as it is now, result}: {0} it may be begun; {1, fencing token}
-- begun, and instead of a result the line before, if that was in doubt; {2}
-- done; {3} in doubt; {4} the fingerprint differs; {5, left ms} the lock is
-- taken. An error proves that nothing was changed, except that a number of the
-- counter may remain unused.
--
-- A key that holds the token already, by a wait in line, counts as free; every
-- answer but {1} and {5} gives it back. A token begins once: if the record has
-- it, this is an old message. To look, no token is needed.
-- include record.lua
-- include counter.lua
-- include hand_over.lua
if not redis.replicate_commands then
    return too_old()
end
redis.replicate_commands()
local key, token, mode, fingerprint = KEYS[1], ARGV[1], ARGV[3], ARGV[5]
local r, failure = record_of(KEYS[2])
if failure then
    return failure
end
local s, left = look(key, token)
local looks = mode == 'look'
local mine = not looks and holds(s, key, token)
local code, number, result = nil, 0, nil
if r and r.state ~= 'failed' and r.fingerprint ~= fingerprint then
    code = 4
elseif r and r.state == 'done' then
    code = 2
    if r.size >= 0 then
        result = redis.call('GETRANGE', KEYS[2], #r.line + 1, '-1')
    end
elseif not (mine or fits(s, token)) or
    (r and r.token == token and not looks) then
    return {5, left, r and r.line}
elseif r and r.open and mode ~= 'retry' then
    code = 3
elseif looks then
    code = 0
end
if code then
    if mine then
        give_back(s, key, token, ARGV[8], ARGV[7])
    end
    return {code, number, r and r.line, result}
end
local last, wrong = counter_of(KEYS[3])
if wrong then
    return wrong
end
local now = clock()
local ms = math.floor(now / 1000)
local before = r and r.open and r.line or nil
local doubts = r and r.doubts + (r.open and 1 or 0) or 0
r = {
    state = 'begun', token = token, fingerprint = fingerprint, keep = ARGV[4],
    fence = math.max(last + 1, r and r.fence + 1 or 0, now),
    attempt = r and r.attempt + 1 or 1, doubts = doubts,
    late = r and r.late or 0, first = r and r.first or ms, since = ms,
    ended = 0, code = 0, size = 0, left = -1
}
-- The server has checked that the user may access all KEYS, and who may SET the
-- record may SET the lock too. So if a write is refused, only the counter may
-- have been written.
count(KEYS[3], r.fence, now, ARGV[6])
write(KEYS[2], r, '')
put(s, key, token, ARGV[2])
return {1, r.fence, r.line, before}
