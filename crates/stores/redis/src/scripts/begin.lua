-- What the scripts of the line begin with: the time, and what stands at the holder key. A key of another type stops the
-- script here, before anything is written.

local call, sub = redis.call, string.sub
local keys, own = KEYS, ARGV[1]
local holder = keys[1]
local clock = call('TIME')
local held = call('GET', holder)
