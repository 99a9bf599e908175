-- Lets KEYS[1] live ARGV[2] ms from now if ARGV[1] is what holds it.
if redis.call('GET', KEYS[1]) == ARGV[1] then
    return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0
