-- SPDX-License-Identifier: MIT
-- EXISTS comes last: what was read before it was there all the while, also
-- where an old server lets a key expire between two commands of the script.
local seen = {
    redis.call('GETRANGE', KEYS[1], '0', '511'), redis.call('PTTL', KEYS[1])
}
if redis.call('EXISTS', KEYS[1]) == 0 then
    return {}
end
return seen
