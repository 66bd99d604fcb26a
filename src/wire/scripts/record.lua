-- SPDX-License-Identifier: MIT
-- The record of work that must be done once: a line (wire/record.h), and the
-- result. Numbers are exact below 2^53. Everything but reading needs TIME
-- before a write, so servers before 3.2 are refused.
local function too_old()
    return {err = 'ERR a record needs Redis 3.2 or later, or Valkey'}
end
-- Reads the text of a record; nil: it is not one.
local function parse(text)
    local r, size = {}, nil
    r.line, r.state, r.token, r.fence, r.attempt, r.doubts, r.first, r.since,
        r.ended, r.code, r.late, r.keep, r.fingerprint, size = string.match(
        text, '^(once1 (%l+) (%S+) (%d+) (%d+) (%d+) (%d+)' ..
        ' (%d+) (%d+) (%-?%d+) (%d+) (%d+) ([-=]%S*) (%-?%d+))\n')
    if r.line then
        r.size = size + 0
        r.open = r.state == 'begun' or r.state == 'doubt'
        if r.open or r.state == 'done' or r.state == 'failed' then
            return r
        end
    end
end
-- Has the value exactly the length that its line says? text is its beginning.
-- STRLEN would be one more permission.
local function is_whole(key, r, text)
    if r.size < -1 or r.size > 1048576 then
        return false
    end
    local length = #r.line + 1 + math.max(r.size, 0)
    if #text < 1024 then
        return #text == length
    end
    return #redis.call('GETRANGE', key, length - 1, length) == 1
end
-- Returns the record, or nil if there is none. Anything else is the second
-- value, an error. A value that was cut, or that something was appended to, is
-- no record: its result is not the one that was told.
local function record_of(key)
    local text = redis.pcall('GETRANGE', key, '0', '1023')
    if text.err and not string.find(text.err, 'wrong kind') then
        return nil, text
    end
    local r = parse(text.err or text)
    if r and is_whole(key, r, text) then
        return r
    elseif text == '' and redis.call('EXISTS', key) == 0 then
        return nil
    end
    return nil, {err = "WRONGTYPE key '" .. key .. "' should hold a record " ..
        'of work but holds ' .. (r and 'one that was damaged: its length ' ..
        'differs from what its first line says' or 'something else')}
end
-- Writes the record, which expires after r.left ms, if that is not negative.
local function write(key, r, result)
    r.line = string.format('once1 %s %s %.0f %.0f %.0f %.0f %.0f %.0f %.0f' ..
        ' %.0f %.0f %s %.0f', r.state, r.token, r.fence, r.attempt, r.doubts,
        r.first, r.since, r.ended, r.code, r.late, r.keep, r.fingerprint,
        r.size)
    local text = r.line .. '\n' .. result
    if r.left + 0 >= 0 then
        local ms = string.format('%.0f', math.max(r.left, 1))
        redis.call('SET', key, text, 'PX', ms)
    else
        redis.call('SET', key, text)
    end
end
