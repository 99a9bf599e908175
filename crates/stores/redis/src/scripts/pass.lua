-- The usual release of a line: its one holder leaves, and its heir comes in. Nothing is decided here. Who is next was found
-- out when the line was last written, and stands in the marker (write.lua); whatever would have to be looked at anew goes
-- the long way, which is the rest of `leave`.
--
-- Surprises: the line is left as it is. The marker says that the heir has it now, and whoever comes by next writes that
-- down (line.lua), while the heir is already at work. And every text that is made costs an idle server, as does a new end of
-- the marker: so it has in it, as they stand, the marker that comes after it and the news, but for the number, and says
-- whether another end is needed. Nothing is made a number: a moment in milliseconds is greater, as a text, than one in
-- microseconds only if it is a later millisecond.
--
-- Places in the marker: its holder from 5, until when this may be done from 38, when the next one ends from 52 (zeros: as this
-- one), the next one from 66, the rest of the news (when the heir's time ends, its question) from 103, its channel from 129.
-- Written by write.lua, and read by line.lua, inspect.lua and observe.lua, too: change them together.

if held and #held > 128 and not ARGV[3] and sub(held, 5, 36) == own and sub(held, 1, 4) == 'lk1=' then
    local told, number = ARGV[2], clock[1] .. sub('000000', #clock[2] + 1) .. clock[2]
    -- A number that is not behind the clock has to be written down for a day.
    if #number == 16 and #told == 16 and told < number and sub(held, 38, 50) > number then
        local marker, marker_ends = sub(held, 66, 102) .. number, sub(held, 52, 64)
        if marker_ends == '0000000000000' then
            call('SET', holder, marker, 'KEEPTTL')
        else
            call('SET', holder, marker, 'PXAT', marker_ends)
        end
        call('PUBLISH', sub(held, 129), marker .. sub(held, 103, 127))
        return 'R'
    end
end
