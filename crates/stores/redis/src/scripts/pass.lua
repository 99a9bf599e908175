-- The usual release of a line: its one holder leaves, and its heir comes in. Nothing is decided here. Who is next was found
-- out when the line was last written, and stands in the marker (write.lua); whatever would have to be looked at anew goes
-- the long way, which is the rest of `leave`.
--
-- Surprises: the line is left as it is. The marker says that the heir has it now, and whoever comes by next writes that
-- down (line.lua), while the heir is already at work. And nothing is made a number: a server that was idle takes as long for
-- that as for a command, so texts of one length are compared, down to the millisecond like all ends.
--
-- Places in the marker: its holder from 5, when that hold ends from 38, when the marker ends without it from 52, the heir
-- from 66, when its time ends from 99, its question from 113, its channel from 124. Written by write.lua, and read by line.lua
-- and inspect.lua, too: change them together.

if held and #held > 123 and not ARGV[3] and sub(held, 1, 36) == 'lk1=' .. own then
    local told, number = ARGV[2], clock[1] .. sub('000000', #clock[2] + 1) .. clock[2]
    local now = sub(number, 1, 13)
    -- A number that is not behind the clock has to be written down for a day.
    if #number == 16 and #told == 16 and told < number and sub(held, 38, 50) >= now and sub(held, 99, 111) > now then
        local heir = sub(held, 66, 97)
        call('SET', holder, 'lk1=' .. heir .. ':' .. number, 'PXAT', sub(held, 52, 64))
        call('PUBLISH', sub(held, 124), heir .. ' ' .. number .. ' ' .. sub(held, 99, 122))
        return 'R'
    end
end
