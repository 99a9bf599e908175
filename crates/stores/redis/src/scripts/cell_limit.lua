-- Limits. window and gcra: how much to take, the limit, its period in ns.
-- Answers: A remaining full-in-ns behind-µs · L remaining retry-after-ns (or nothing: never) behind-µs.
--
-- Quotients of whole numbers below 2^53 never round up to the next whole one, so `floor` and `ceil` of them are exact. What
-- is taken may be any number of 64 bits: it is rounded only where it is far above every limit.

if fenced then return { 'F', asked } end
if live and kind ~= action then return { 'M', asked, kind } end

local take, limit, per = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local elapsed = live and (now - touched) * 1000 or 0
-- Nobody is told the version of a limiter: one that is full again may be forgotten at once.
linger_us = 0

-- Kept at least until it is full again.
local function kept(full_ns)
    return math.max(keep_us or 0, math.ceil(full_ns / 1000))
end

if action == 'window' then
    local age, used = 0, 0
    if live and span + elapsed < per then age, used = span + elapsed, value end
    local remaining = math.max(0, limit - used)
    if take > remaining then return { 'L', asked, remaining, take <= limit and per - age, behind } end
    save('window', fresh, kept(per), 'value', format('%.0f', used + take), 'span', format('%.0f', age))
    return { 'A', asked, remaining - take, per - age, behind }
end

local ahead = live and math.max(0, span - elapsed) or 0
local each = math.ceil(per / limit)
local full = each * limit
local function room(from)
    return math.floor(math.max(0, full - from) / each)
end

if take > limit then return { 'L', asked, room(ahead), false, behind } end
local after = ahead + each * take
if after > full then return { 'L', asked, room(ahead), after - full, behind } end
save('gcra', fresh, kept(full), 'span', format('%.0f', after))
return { 'A', asked, room(after), after, behind }
