-- Finds out who is in, once those are out whose time is over: the line, nobody, a fast-lane claim that comes into the line,
-- or another client. A block of the line's scripts: see line.lua.

if not is_settled then
    if is_unmarked then in_count, used, latest = 0, 0, 0 end
    if kind and now > soonest then
        local first_waiting = call('ZRANGE', ends, '0', '0', 'WITHSCORES')[2]
        local first_in = sole ~= '' and latest
        if capacity > 1 then first_in = call('ZRANGE', inside, '0', '0', 'WITHSCORES')[2] end
        soonest = min(tonumber(first_in) or NEVER, tonumber(first_waiting) or NEVER)
    end
    if not kind or (in_count == 0 and wait_count == 0) then
        if kind then known = last end
        own_claim, kind, capacity, used, in_count, wait_count, last, order = nil, nil, nil, 0, 0, 0, 0, 0
        soonest, latest, longest, till, marked, sole = NEVER, 0, 0, 0, 0, ''
    end
    if held and not is_marked then
        local id, number, lease, length, owner_and_note
        if string.sub(held, 1, 4) == FAST then
            id, number, lease, length, owner_and_note = string.match(held, '^lk1:(%x+):([%d ]+):(%d+):(%d+):(.*)$')
        end
        if not id or (kind and not (kind == 'mutex' and capacity == 1)) then
            taken_by_another = true
        else
            -- A fast-lane hold comes into the line as it is: same id, same time left.
            local left = call('PTTL', holder)
            if left < 0 then left = tonumber(lease) end
            number, length = tonumber(number) or 0, tonumber(length)
            local since = number > 0 and math.floor(number / 1000) or min(now, now + left - lease)
            if not kind then kind, capacity, floor = 'mutex', 1, begin_line(floor) end
            local claim = {
                'in', 1, tonumber(lease), number, since, since, now + left, '', 0,
                string.sub(owner_and_note, 1, length), string.sub(owner_and_note, length + 1),
            }
            if id == own then own_claim = claim end
            unsaved[id] = claim
            sole, in_count, used = id, 1, 1
            soonest, latest = min(soonest, now + left), now + left
        end
    end
end
