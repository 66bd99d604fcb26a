-- SPDX-License-Identifier: MIT
-- Sets a key with a TTL in one write. PSETEX exists from 2.6.0 on, but may be
-- renamed or denied; SET with PX exists from 2.6.12 on. Any other error of
-- PSETEX (out of memory, a replica) is an error of SET too, which raises it.
local function store(key, ms, value)
    local done = redis.pcall('PSETEX', key, ms, value)
    return done.err and redis.call('SET', key, value, 'PX', ms) or done
end
