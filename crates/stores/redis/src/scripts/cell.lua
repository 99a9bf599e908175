-- A cell, and what all scripts that change one share. Joined in front of `cell_value`, `cell_count`, `cell_limit` and
-- `cell_fence`, each of which does in one step what `CellOp::apply` does in the core.
--
-- KEYS: the hash. ARGV: the action, µs to be kept (or nothing), then what the action needs. Fields of the hash: `kind`
-- (empty, bytes, number, window, gcra, or gone: only a version to stay above), `version`, `touched` (µs), `keep` (µs),
-- `value` (bytes, a number, or what was taken of a window), `span` (ns: a window's age, or how far a smooth limit is
-- ahead), `read` and `write` (the fence's marks, 20 digits). `cells/state.rs` reads and writes the same: change both.
--
-- Every answer begins with a word and the clock's µs. F: behind a fence. M kind: it holds something else.
--
-- Surprise: Lua counts in doubles, exact below 2^53. The clock in µs, and so every version, is below that until the year
-- 2255; spans and costs of limiters are ns of at most a day, 2^47. Differences of times that are longer than 2^53 ns (104
-- days) are rounded, but only ever compared with a day. Counters and tokens have all 64 bits: they are compared as text,
-- and added to by HINCRBY.

local key, action, keep_us = KEYS[1], ARGV[1], tonumber(ARGV[2])
local MINUTE_US, DAY_US = 60000000, 86400000000
local EXACT, SPAN_MAX = 9000000000000000, 1000000000000000
local NO_MARK, MARK_MAX = '00000000000000000000', '18446744073709551615'
local call, find, format = redis.call, string.find, string.format

local clock = call('TIME')
local asked = clock[1] * 1000000 + clock[2]

-- Everything is read before anything is written: a key of another type stops the script here.
local kind, version, touched, keep, value, span, read_mark, write_mark = unpack(call('HMGET', key,
    'kind', 'version', 'touched', 'keep', 'value', 'span', 'read', 'write'))

local function foreign()
    error('lockkeeper:foreign a cell cannot be read')
end

-- A whole number that a double holds.
local function exact(text, below)
    local number = text and #text <= 16 and (text == '0' or find(text, '^[1-9]%d*$')) and tonumber(text)
    if not number or number >= below then foreign() end
    return number
end

local function check_mark(text)
    if #text ~= 20 or find(text, '%D') or text > MARK_MAX then foreign() end
end

-- A whole number of 64 bits with a sign, as HINCRBY writes it.
local function check_signed(text)
    local sign, digits = string.match(text, '^(-?)([1-9]%d*)$')
    local most = sign == '-' and '9223372036854775808' or '9223372036854775807'
    if not digits or #digits > 19 or (#digits == 19 and digits > most) then foreign() end
end

local number_of_version = 0
if kind then
    number_of_version = exact(version, EXACT)
    if number_of_version == 0 then foreign() end
    touched = kind == 'gone' and 0 or exact(touched, EXACT)
    if keep then keep = exact(keep, EXACT) end
    if kind == 'bytes' then
        if not value then foreign() end
    elseif kind == 'number' then
        if value ~= '0' then check_signed(value or '') end
    elseif kind == 'window' then
        value, span = exact(value, SPAN_MAX), exact(span, SPAN_MAX)
    elseif kind == 'gcra' then
        span = exact(span, SPAN_MAX)
    elseif kind ~= 'empty' and kind ~= 'gone' then
        foreign()
    end
    if read_mark then check_mark(read_mark) end
    if write_mark then check_mark(write_mark) end
elseif call('EXISTS', key) == 1 then
    foreign()
else
    touched = 0
end
read_mark, write_mark = read_mark or NO_MARK, write_mark or NO_MARK

-- A cell does not follow a clock that goes back; `behind` is how far it would have to.
local now = math.max(asked, touched)
local behind = now - asked
local live = kind and kind ~= 'gone' and not (keep and now - touched >= keep)
local stale = kind and not live
local fenced = live and (read_mark ~= NO_MARK or write_mark ~= NO_MARK)
-- Above every version that the cell ever had, also when the clock went back.
local fresh = math.max(asked, number_of_version + 1)
local fresh_text = format('%.0f', fresh)
-- How much longer than the value the version stays, should the clock be set back soon after.
local linger_us = MINUTE_US

-- What a reader sees: value and version, or nothing.
local function current()
    if live and (kind == 'bytes' or kind == 'number') then return value, version end
    return false, false
end

-- What is over is no part of what comes after it.
local function wipe()
    if stale then call('DEL', key) end
    stale = false
end

-- The key is dropped by the server at this time, or when the clock is past the version, whichever is later. Who has to
-- stay above a version that is ahead of the clock has seen it go back, and stays for a day.
local function drop_at(us, number)
    local at_us = math.max(us, number) + (number > asked and DAY_US or linger_us)
    call('PEXPIREAT', key, format('%.0f', math.ceil(at_us / 1000)))
end

-- Writes the cell with this kind and version, changed now, to be kept so long, and with these further fields.
local function save(kind_now, number, keep_for, ...)
    wipe()
    local number_text = number == fresh and fresh_text or version
    local now_text = now == fresh and fresh_text or format('%.0f', now)
    if keep_for then
        call('HSET', key, 'kind', kind_now, 'version', number_text, 'touched', now_text,
            'keep', format('%.0f', keep_for), ...)
        drop_at(now + keep_for, number)
        return
    end
    call('HSET', key, 'kind', kind_now, 'version', number_text, 'touched', now_text, ...)
    if live and keep then
        call('HDEL', key, 'keep')
        call('PERSIST', key)
    end
end

