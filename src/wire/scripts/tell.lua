-- SPDX-License-Identifier: MIT
-- KEYS key, record  ARGV token, verdict, code, keep, '-' or '=fingerprint',
-- how long the key stays in ms (0: it is deleted, -1: it is left alone), how to
-- hand over, mark, result if it is kept  ->  {1 told or 0, enum release_reply,
-- line}; 'unbegun': 1 or 0
--
-- Records how the work that the token began has ended, and gives the lock back,
-- if the key holds the token. The verdicts: done, failed, unsure; 'clear': the
-- earlier attempts did not happen, the work goes on, and the lock stays;
-- 'failed' with the line that begin found in doubt as the result: that line
-- is written again, as this attempt has changed nothing about the doubt;
-- 'unbegun': as failed, but only if the token has begun and said nothing yet.
-- The replies, {code, number, line of the record as it is now}: {1} told, {0}
-- not: somebody else has begun. The number says what became of the lock, as in
-- release.lua. To 'unbegun' only a number: 1 if the record is about this token,
-- else 0. An error proves that nothing was changed.
-- include record.lua
-- include hand_over.lua
if not redis.replicate_commands then
    return too_old()
end
redis.replicate_commands()
local key, token, verdict = KEYS[1], ARGV[1], ARGV[2]
local r, failure = record_of(KEYS[2])
if failure then
    return failure
end
local time = redis.call('TIME')
local now = ms_of(time)
local s = content(key)
local mine, own = holds(s, key, token), r and r.token == token
-- What the record becomes, by what it says now and by the verdict: '' is no
-- change, and nil that it cannot be told.
local failed = r and (r.doubts + r.late > 0 and 'doubt' or 'failed')
local clear = r and mine and r.late + 0 == 0 and 'begun' or nil
local rows = {
    ['none'] = {done = 'done', failed = '', unsure = 'doubt'},
    ['own begun'] = {done = 'done', failed = failed, unsure = 'doubt',
        clear = clear, unbegun = failed},
    ['own doubt'] = {done = 'done', failed = failed, unsure = 'doubt',
        unbegun = ''},
    ['own done'] = {done = '', failed = '', unsure = '', unbegun = ''},
    ['own failed'] = {done = 'done', failed = '', unsure = '', unbegun = ''},
    ['other failed'] = {done = 'done', unsure = 'doubt'}
}
local row = r and (own and 'own ' or 'other ') .. r.state or 'none'
local state = (rows[row] or {})[verdict]
local before = verdict == 'failed' and parse((ARGV[9] or '') .. '\n')
-- It is said again:
if before and r and r.line == before.line then
    state = ''
end
local told, late = state and 1 or 0, not state and verdict == 'done'
local writes = late or (state and state ~= '')
local lasts, released, result = ARGV[6], 0, ''
if writes then
    -- Changes nothing, but is refused where a write would be refused (no
    -- permission, no memory). So the record can be written until the script
    -- ends.
    redis.call('SET', KEYS[2], '', r and 'NX' or 'XX')
end
if late then
    -- A late DONE is only counted in the record of the other attempt.
    result = redis.call('GETRANGE', KEYS[2], #r.line + 1, '-1')
    r.late, r.left = r.late + 1, redis.call('PTTL', KEYS[2])
elseif told == 1 and not writes and r then
    -- It is said again. It is written again too, because a WAIT that follows
    -- says nothing without a write.
    local text = redis.call('GETRANGE', KEYS[2], '0', '-1')
    local left = redis.call('PTTL', KEYS[2])
    if left < 0 then
        redis.call('SET', KEYS[2], text)
    else
        redis.call('SET', KEYS[2], text, 'PX', math.max(left, 1))
    end
end
if mine and verdict ~= 'clear' and lasts ~= '-1' then
    if lasts == '0' then
        released = give_back(s, key, token, ARGV[8], ARGV[7])
    else
        set_lease(s, key, token, lasts)
    end
end
-- Nothing is refused from here on.
if before and state == 'doubt' and before.open and before.late == r.late then
    r = before
    r.left = -1
elseif writes and not late then
    r = r or {
        fence = 0, attempt = 1, doubts = 0, late = 0, first = now,
        since = now, keep = ARGV[4]
    }
    if not own then
        r.token, r.fingerprint = token, ARGV[5]
    end
    r.state, r.size = state, 0
    if verdict == 'clear' then
        r.doubts, r.ended, r.code = 0, 0, 0
    else
        r.ended, r.code = now, ARGV[3]
    end
    if state == 'done' then
        result = ARGV[9] or ''
        r.size = ARGV[9] and #result or -1
    end
    r.left = (state == 'done' or state == 'failed') and r.keep or -1
end
if writes then
    write(KEYS[2], r, result)
end
if verdict == 'unbegun' then
    return told
end
return {told, released, r and r.line}
