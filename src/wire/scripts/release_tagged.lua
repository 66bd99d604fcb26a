-- SPDX-License-Identifier: MIT
-- For a key with a hash tag, which the keys of its line must share.
local mark = KEYS[1] .. ':w'
-- include hand_over.lua
