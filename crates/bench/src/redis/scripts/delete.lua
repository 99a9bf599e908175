-- The release that every client of the plain family has: delete the key if it still holds our value.
-- KEYS: the key. ARGV: the value.
if redis.call('GET', KEYS[1]) == ARGV[1] then
    return redis.call('DEL', KEYS[1])
end
return 0
