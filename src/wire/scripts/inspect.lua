-- SPDX-License-Identifier: MIT
-- KEYS key  ->  {value up to 512 bytes, left}, or {}
-- include lock.lua
local s, left, wrong = look(KEYS[1])
if wrong then
    return wrong
end
return s and {s, left} or {}
