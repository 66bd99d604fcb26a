-- SPDX-License-Identifier: MIT
-- Does the key hold the token? One of another type does not. The comparison is
-- explained in release.lua.
local function holds(key, token)
    local seen = redis.pcall('GETRANGE', key, '0', '511')
    if seen.err and not string.find(seen.err, 'wrong kind') then
        seen = redis.call('GETRANGE', key, '0', '511')
    end
    return seen == token
end
