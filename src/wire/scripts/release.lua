-- SPDX-License-Identifier: MIT
-- For a key without a hash tag. Whether it has one is not found out here: that
-- would take longer than all else that the mark costs a release.
local mark = '{' .. KEYS[1] .. '}:w'
-- include hand_over.lua
