-- SPDX-License-Identifier: MIT
-- Set a key with a ttl, in one write. PSETEX exists from 2.6.0 on, but may have
-- been renamed away or denied; SET with PX exists from 2.6.12 on. Any other
-- error of PSETEX (out of memory, a replica) is one of SET too, and is raised.
local function put(key, ms, value)
    local done = redis.pcall('PSETEX', key, ms, value)
    return done.err and redis.call('SET', key, value, 'PX', ms) or done
end
