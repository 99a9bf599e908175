-- Bytes behind a fence. enter: token, 1 if shared. put: token, 1 if there are bytes, bytes. Tokens have 20 digits.
-- Answers: E value version (or nothing) · D version · S token (that was seen, and is later).

if live and kind ~= 'bytes' and kind ~= 'empty' then return { 'M', asked, kind } end

local token = ARGV[3]
local shared = action == 'enter' and ARGV[4] == '1'
local writers, readers = live and write_mark or NO_MARK, live and read_mark or NO_MARK
local seen = writers
if not shared and readers > seen then seen = readers end
if token < seen then return { 'S', asked, seen } end

if shared then
    -- The readers' mark does not fall: an older reader may still come in beside a later one.
    if token < readers then token = readers end
    save(live and kind or 'empty', live and number_of_version or fresh, keep_us, 'read', token)
    return { 'E', asked, current() }
end
if action == 'enter' then
    save(live and kind or 'empty', live and number_of_version or fresh, keep_us, 'write', token)
    return { 'E', asked, current() }
end
if ARGV[4] == '1' then
    save('bytes', fresh, keep_us, 'write', token, 'value', ARGV[5])
else
    save('empty', fresh, keep_us, 'write', token)
    call('HDEL', key, 'value')
end
return { 'D', asked, fresh_text }
