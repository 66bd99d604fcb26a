-- SPDX-License-Identifier: MIT
-- May a token be granted a lock, and how it is granted.
-- include holders.lua
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
-- s.now as an argument of a command, which Lua would take longer to format.
local function now_of(s)
    s.text = s.text or
        string.format('%d%06d', s.now / 1000000, s.now % 1000000)
    return s.text
end
-- Counts the permits that are held. Returns the state, or false: none is held.
local function counted(s, key)
    s.used, s.most = 0, math.huge
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
-- May the token be granted the lock? If so, what kind() returns; else nil.
local function fits(s, token)
    if s ~= false and (not s or not s.used or s.pause) then
        return nil
    end
    local name, k, l, head = kind(token)
    if s == false or (k and s.used + k <= math.min(s.most, l)) then
        return name, k, l, head
    end
end
-- Adds a token that fits to this state, which grant() then writes: to many
-- tokens at once, if several may hold the lock. k, l, head: as fits() returned
-- them. Returns the new state; or nil and an error. s.ms is how long the key
-- lasts then, if that is the lease of a token, which need not be formatted.
local function add(s, token, lease, k, l, head)
    if not k then
        return token
    elseif not s then
        local time = redis.pcall('TIME')
        if time.err then
            return nil, time
        end
        local now, text = ms_of(time)
        local ends = now + lease
        return {
            head = head, number = '', since = now, now = now, text = text,
            ends = ends, ms = lease, lasts = 0, used = k, most = l,
            new = {FAR + now, head, ends, token}
        }
    end
    local ends, new = s.now + lease, s.new
    if new then
        new[#new + 1], new[#new + 2] = ends, token
    else
        new = {ends, token}
        s.lasts, s.new = s.ends, new
    end
    if s.head ~= head and s.head ~= 'nxl=*' then
        local at = s.lasts == 0 and 0 or #new
        s.old = s.lasts ~= 0 and s.head .. s.number
        s.head = 'nxl=*'
        new[at + 1], new[at + 2] = FAR + s.since, s.head .. s.number
    end
    if ends > s.ends then
        s.ends, s.ms = ends, lease
    end
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
    local new, ms, done = s.new, s.ms or s.ends - s.now, nil
    s.new = false
    if s.lasts == 0 then
        done = redis.pcall('DEL', key)
        done = tonumber(done) and redis.pcall('ZADD', key, unpack(new)) or done
        if not tonumber(done) then
            return done
        end
        done = redis.pcall('PEXPIRE', key, ms)
        if tonumber(done) then
            return nil
        end
        -- No key without a TTL stays: that DEL is permitted was seen above.
        redis.pcall('DEL', key)
        return done
    end
    -- Who may not remove members must not add any.
    done = redis.pcall('ZREMRANGEBYSCORE', key, '-inf', now_of(s))
    if s.old and tonumber(done) then
        done = redis.pcall('ZREM', key, 'nxl=')
    end
    -- Before there is a new member: it must not outlast the key.
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
local function put(s, key, token, lease, k, l, head)
    local refused
    s, refused = add(s, token, lease, k, l, head)
    refused = refused or grant(s, key, lease)
    if refused then
        return nil, refused
    end
    return s
end
