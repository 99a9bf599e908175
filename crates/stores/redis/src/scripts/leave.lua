-- A claim leaves: held or waiting, by its holder or broken by somebody else.
--
-- ARGV: id, number: the token's number if the caller knows it, `-` if nobody was ever told it, `?` if somebody may have
-- been; and, if it is to be kept, keep (`for`, `lease`) and keep-ms. Answers R (it was there) or N.

local told, keep = tonumber(ARGV[2]), ARGV[3]
local answer = 'N'
local number = 0
if taken_by_another and held and string.sub(held, 1, 36) == FAST .. own then
    -- A fast-lane hold in front of a line of another kind.
    call('DEL', holder)
    taken_by_another, changed, a_hold_ended, may_fit = false, true, true, true
    number = told or 0
    answer = 'R'
elseif own_claim then
    local was_left, is_in = own_claim[STATE] == 'left', own_claim[STATE] ~= 'waiting'
    local until_ms = own_claim[ENDS]
    if is_in and not was_left and ARGV[2] ~= '-' then
        number = told or own_claim[NUMBER]
        -- Nobody here knows what number its holder was told, but it was before its time was over.
        if number == 0 then number = until_ms * 1000 end
    end
    local kept_until = now
    if keep == 'for' then kept_until = now + ARGV[4] elseif keep == 'lease' then kept_until = until_ms end
    if kept_until <= now or not is_in then
        gone = { own }
    else
        if was_left then kept_until = min(until_ms, kept_until) end
        own_claim[STATE], own_claim[ENDS], heir = 'left', kept_until, nil
        unsaved[own] = own_claim
        if capacity > 1 then call('ZADD', inside, kept_until, own) end
        if in_count == 1 then latest = 0 else latest_is_stale = true end
        soonest, latest = min(soonest, kept_until), max(latest, kept_until)
        changed = true
    end
    answer = was_left and 'N' or 'R'
end
if number >= now_us then
    -- A floor of another type stops the script here. A line that goes on does so above the number.
    floor = floor or tonumber(call('GET', floor_key)) or 0
    known, last = max(known, number), max(last, number)
end
