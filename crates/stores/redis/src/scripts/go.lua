-- Takes those in `gone` out of the line, wherever they stand. A block of the line's scripts: see line.lua.

for nth = 1, gone and #gone or 0 do
    local id = gone[nth]
    local claim = own_claim
    if id ~= own then claim = read(call('HGET', line, id), NOTE) end
    local was_in = sole == id
    if capacity > 1 then was_in = call('ZREM', inside, id) == 1 elseif was_in then sole = '' end
    if was_in then
        in_count, used = in_count - 1, used - (claim and claim[WEIGHT] or 0)
        a_hold_ended = true
        if in_count == 0 then latest = 0 else latest_is_stale = true end
    else
        wait_count = wait_count - call('ZREM', waiting, id)
        call('ZREM', ends, id)
    end
    call('HDEL', line, id)
    unsaved[id] = nil
    if id == own then own_claim = nil end
    if id == heir then heir = nil end
    changed, may_fit = true, true
end
gone = nil
