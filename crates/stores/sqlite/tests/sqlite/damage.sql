-- Each line does one thing to the claims of `bad` that this library never would.
UPDATE claims SET kind = 'bogus' WHERE lock = 'bad';
UPDATE claims SET id = x'0102' WHERE lock = 'bad';
UPDATE claims SET owner = x'' WHERE lock = 'bad';
UPDATE claims SET weight = 0 WHERE lock = 'bad';
UPDATE claims SET weight = 2 WHERE lock = 'bad';
UPDATE claims SET weight = 5000000000 WHERE lock = 'bad';
UPDATE claims SET capacity = -1 WHERE lock = 'bad';
UPDATE claims SET pid = -1 WHERE lock = 'bad';
UPDATE claims SET host = CAST(x'ff' AS TEXT) WHERE lock = 'bad';
UPDATE claims SET entered = -1 WHERE lock = 'bad';
UPDATE claims SET held_since = -1 WHERE lock = 'bad';
UPDATE claims SET expires = -1 WHERE lock = 'bad';
UPDATE claims SET lease = -1 WHERE lock = 'bad';
UPDATE claims SET left = 7 WHERE lock = 'bad';
UPDATE claims SET ord = -5 WHERE lock = 'bad';
UPDATE claims SET ord = 9223372036854775807 WHERE lock = 'bad';
