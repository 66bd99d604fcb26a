-- SPDX-License-Identifier: MIT
-- Compare and delete, without a hand-over. More bytes are read than a token can
-- have, so that a longer value never matches. The bounds are strings because
-- Lua would format numbers on each call, which takes as long as the rest of the
-- script.
if redis.call('GETRANGE', KEYS[1], '0', '511') == ARGV[1] then
    return redis.call('DEL', KEYS[1])
end
return 0
