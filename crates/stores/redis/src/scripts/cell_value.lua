-- Bytes with a version. put: version wanted (or nothing), bytes. remove: version wanted (or nothing).
-- Answers: D version (0: it is gone) · C value version (of what is there instead).

if fenced then return { 'F', asked } end
if action == 'put' and live and kind ~= 'bytes' and kind ~= 'empty' then return { 'M', asked, kind } end

local wanted = ARGV[3]
if wanted ~= '' and wanted ~= (live and version or '0') then return { 'C', asked, current() } end

if action == 'put' then
    save('bytes', fresh, keep_us, 'value', ARGV[4])
    return { 'D', asked, fresh_text }
end

if kind and kind ~= 'gone' then
    call('DEL', key)
    call('HSET', key, 'kind', 'gone', 'version', version)
    drop_at(asked, number_of_version)
end
return { 'D', asked, '0' }
