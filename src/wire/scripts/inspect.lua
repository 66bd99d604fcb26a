-- SPDX-License-Identifier: MIT
-- EXISTS comes last: if the key exists then, it existed during both reads, even
-- on old servers, where a key may expire between two commands of the script.
local seen = {
    redis.call('GETRANGE', KEYS[1], '0', '511'), redis.call('PTTL', KEYS[1])
}
if redis.call('EXISTS', KEYS[1]) == 0 then
    return {}
end
return seen
