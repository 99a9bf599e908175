-- A number of 64 bits that starts at zero. add: how much. max: the least it shall be. take: the least number that is
-- enough (or nothing: none is), then what to take off it, in two parts, since one may be too much for HINCRBY.
-- Answers: N value version · T value (too low, nothing changed) · O (it would go beyond 64 bits, nothing changed).

if fenced then return { 'F', asked } end
if live and kind ~= 'number' then return { 'M', asked, kind } end

-- Is the one number, as text, at least the other?
local function reaches(one, other)
    local one_minus, other_minus = string.byte(one) == 45, string.byte(other) == 45
    if one_minus ~= other_minus then return other_minus end
    if #one ~= #other then return (#one > #other) ~= one_minus end
    return one == other or (one > other) ~= one_minus
end

-- Adds to the number; nothing if it does not fit.
local function add(by)
    local sum = redis.pcall('HINCRBY', key, 'value', by)
    if type(sum) == 'table' then return nil end
    if sum > -EXACT and sum < EXACT then return format('%.0f', sum) end
    return call('HGET', key, 'value')
end

local old = live and value or '0'
local new
if action == 'add' then
    -- Nothing plus anything fits: what is wiped is not missed.
    wipe()
    new = add(ARGV[3])
    if not new then return { 'O', asked } end
    save('number', fresh, keep_us)
elseif action == 'take' then
    if ARGV[3] == '' or not reaches(old, ARGV[3]) then return { 'T', asked, old } end
    wipe()
    new = add(ARGV[4])
    if ARGV[5] ~= '0' then new = add(ARGV[5]) end
    save('number', fresh, keep_us)
else
    new = reaches(old, ARGV[3]) and old or ARGV[3]
    save('number', fresh, keep_us, 'value', new)
end
return { 'N', asked, new, fresh_text }
